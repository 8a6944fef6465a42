#include "sampler/perf/perf_map_watch.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <optional>

#include "absl/hash/hash.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "base/directory.h"
#include "sampler/open_as_user.h"
#include "sampler/running_processes.h"

namespace xenoscope::sampler {
namespace {

using std::chrono::steady_clock;

constexpr steady_clock::duration kLookInterval = std::chrono::milliseconds(200);
// Time between two looks, in multiples of the time that a look takes.
constexpr int kRestAfterLook = 100;
// The same of ReadNew: what it returns is also written to the disk.
constexpr int kRestAfterRead = 1000;
constexpr steady_clock::duration kGrownInterval = std::chrono::seconds(1);
constexpr size_t kMostGrown = size_t{512} << 10;  // bytes of a file that ReadGrown reads
// Limits of the time in which Java virtual machines are asked, in a look and at the end.
constexpr steady_clock::duration kLongestAsking = std::chrono::seconds(1);
constexpr steady_clock::duration kLongestLastAsking = std::chrono::seconds(2);
// Limits, as any user can start processes. The files of others are read when the recording ends.
constexpr size_t kMaxWaiting = 1024;
constexpr size_t kMaxOpenMaps = 64;  // of two descriptors each; perf needs some for each CPU
// The part of all bytes that is for processes which have ended. The others are for those that run.
constexpr size_t kPartOfKept = 3;

bool IsRunning(const File& process) {
  // Of a zombie the directory is still there, but not its root.
  return File(openat(process.fd(), "root", O_PATH | O_CLOEXEC)).is_open();
}

bool HasName(const File& file) {
  struct stat status {};
  return fstat(file.fd(), &status) == 0 && status.st_nlink > 0;
}

// Returns the process of a name "perf-PID.map".
std::optional<uint32_t> ProcessOfMap(absl::string_view name) {
  uint32_t pid = 0;
  if (!absl::ConsumePrefix(&name, "perf-") || !absl::ConsumeSuffix(&name, ".map") ||
      !absl::SimpleAtoi(name, &pid)) {
    return std::nullopt;
  }
  return pid;
}

}  // namespace

PerfMapWatch::PerfMapWatch(std::string proc, std::string tmp, size_t max_bytes)
    : proc_(std::move(proc)),
      tmp_(std::move(tmp)),
      max_bytes_(max_bytes),
      kept_(max_bytes / kPartOfKept) {}

void PerfMapWatch::AskJavaVms() {
  const std::lock_guard lock(looking_);
  if (!java_vms_) java_vms_.emplace(proc_);
}

void PerfMapWatch::AskDueJavaVms() {
  const std::lock_guard lock(looking_);
  if (!java_vms_) return;
  TakeAdded();
  java_vms_->AskDue(steady_clock::now() + kLongestAsking);
}

void PerfMapWatch::AskJavaVmsAgain() {
  const std::lock_guard lock(looking_);
  if (!java_vms_) return;
  TakeAdded();
  java_vms_->AskAll(steady_clock::now() + kLongestLastAsking);
}

std::vector<std::string> PerfMapWatch::Notes() {
  const std::lock_guard lock(looking_);
  return java_vms_ ? java_vms_->Notes() : std::vector<std::string>();
}

void PerfMapWatch::Start() { thread_ = std::thread(&PerfMapWatch::Run, this); }

void PerfMapWatch::Stop() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    is_over_ = true;
  }
  wake_.notify_one();
  thread_.join();
  is_over_ = false;
}

void PerfMapWatch::Add(uint32_t pid) {
  const std::lock_guard lock(mutex_);
  if (added_.size() < kMaxWaiting) added_.insert(pid);
}

void PerfMapWatch::Look() {
  const std::lock_guard lock(looking_);
  LookWithLock();
}

void PerfMapWatch::Run() {
  std::unique_lock lock(mutex_);
  while (!is_over_) {
    lock.unlock();
    AskDueJavaVms();
    const steady_clock::time_point begin = steady_clock::now();
    Look();
    const steady_clock::duration rest = (steady_clock::now() - begin) * kRestAfterLook;
    lock.lock();
    wake_.wait_for(lock, std::max(kLookInterval, rest), [this] { return is_over_; });
  }
}

void PerfMapWatch::LookWithLock() {
  TakeAdded();
  std::erase_if(open_, [this](OpenMap& open) { return KeepIfOver(open); });
  absl::erase_if(waiting_, [this](uint32_t pid) { return OpenIfThere(pid); });
}

void PerfMapWatch::TakeAdded() {
  const std::lock_guard lock(mutex_);
  for (const uint32_t pid : added_) {
    if (java_vms_) java_vms_->Add(pid);
    if (waiting_.size() == kMaxWaiting) break;
    if (std::ranges::find(open_, pid, &OpenMap::pid) == open_.end()) waiting_.insert(pid);
  }
  added_.clear();
}

bool PerfMapWatch::KeepIfOver(OpenMap& open) {
  const bool is_running = IsRunning(open.file.process);
  if (is_running && HasName(open.file.map)) return false;
  kept_.Add(open.file.map, open.pid);
  if (gives_grown_ && ended_grown_.size() < kMostGrown) {
    ended_grown_ += ReadGrownPerfMap(open.file.map, open.pid, kMostGrown, open.given);
  }
  if (is_running) {
    waiting_.insert(open.pid);  // it may make another one
  } else {
    ended_.insert(open.pid);
  }
  return true;
}

bool PerfMapWatch::OpenIfThere(uint32_t pid) {
  if (open_.size() == kMaxOpenMaps) return false;
  PerfMapFile file = OpenPerfMap(proc_ + "/" + std::to_string(pid), pid);
  if (!file.process.is_open()) return true;
  if (!file.map.is_open()) return false;
  open_.push_back({pid, std::move(file), {}});
  return true;
}

std::optional<std::string> PerfMapWatch::ReadNew() {
  const steady_clock::time_point begin = steady_clock::now();
  const std::unique_lock lock(looking_, std::try_to_lock);
  if (!lock.owns_lock() || begin < next_read_) return std::nullopt;
  const size_t version = Version();
  if (version == std::exchange(version_, version)) return std::nullopt;
  PerfMapText text(max_bytes_);
  AddWatched(text);
  const steady_clock::time_point end = steady_clock::now();
  next_read_ = end + (end - begin) * kRestAfterRead;
  return std::move(text).Take();
}

std::optional<std::string> PerfMapWatch::ReadGrown() {
  const steady_clock::time_point begin = steady_clock::now();
  const std::unique_lock lock(looking_, std::try_to_lock);
  if (!lock.owns_lock() || begin < next_grown_) return std::nullopt;
  gives_grown_ = true;
  std::string text = std::exchange(ended_grown_, {});
  for (OpenMap& open : open_) {
    if (text.size() >= kMostGrown) break;
    text += ReadGrownPerfMap(open.file.map, open.pid, kMostGrown, open.given);
  }
  const steady_clock::time_point end = steady_clock::now();
  next_grown_ = std::max(begin + kGrownInterval, end + (end - begin) * kRestAfterRead);
  return text.empty() ? std::nullopt : std::optional(std::move(text));
}

size_t PerfMapWatch::Version() const {
  size_t version = ended_.size();
  for (const OpenMap& open : open_) {
    struct stat now {};
    if (fstat(open.file.map.fd(), &now) != 0) continue;
    version =
        absl::HashOf(version, now.st_ino, now.st_size, now.st_mtim.tv_sec, now.st_mtim.tv_nsec);
  }
  return version;
}

void PerfMapWatch::AddWatched(PerfMapText& text) const {
  text.Add(kept_);
  for (const OpenMap& open : open_) text.Add(open.file.map, open.pid);
}

std::string PerfMapWatch::Read() {
  const std::lock_guard lock(looking_);
  LookWithLock();
  PerfMapText text(max_bytes_);
  AddWatched(text);
  absl::flat_hash_set<uint32_t> pids;
  AddRunning(text, pids);
  pids.insert(ended_.begin(), ended_.end());
  AddEnded(text, pids);
  return std::move(text).Take();
}

void PerfMapWatch::AddRunning(PerfMapText& text, absl::flat_hash_set<uint32_t>& pids) const {
  for (const OpenMap& open : open_) pids.insert(open.pid);
  ForEachProcess(proc_, [&](uint32_t pid, const std::string& process) {
    if (pids.insert(pid).second) text.Add(OpenPerfMap(process, pid).map, pid);
  });
}

void PerfMapWatch::AddEnded(PerfMapText& text, const absl::flat_hash_set<uint32_t>& pids) const {
  const std::vector<std::string> none;
  const auto directory = Directory::Open(tmp_);
  for (const std::string& name : directory.ok() ? directory->List().value_or(none) : none) {
    const std::optional<uint32_t> pid = ProcessOfMap(name);
    if (!pid || pids.contains(*pid)) continue;
    text.Add(OpenAsUser(directory->fd(), name, std::nullopt), *pid);
  }
}

}  // namespace xenoscope::sampler
