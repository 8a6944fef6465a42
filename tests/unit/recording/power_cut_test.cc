// A power cut at any instant loses what was not synced, and leaves a recording that can be read.
//
// The calls below replace the C library's in this program. They follow what fsync and fdatasync
// have written to the disk. After each of them, and each rename and removal, the tests look at the
// disk as if the power were cut there.
#include <dlfcn.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "recording/disk_sync.h"
#include "recording/recording.h"
#include "recording/tree_sync.h"
#include "recording/writer.h"

namespace {

struct Hooks {
  std::mutex mutex;
  std::function<void(int file)> synced;     // the file was synced
  std::function<void()> renamed;            // a file was renamed or removed
  std::function<void(const char*)> making;  // a directory is about to be made
};
Hooks& TheHooks() {
  static Hooks hooks;
  return hooks;
}

thread_local bool is_in_hook = false;

template <typename F, typename... Args>
void CallHook(F Hooks::*hook, Args... args) {
  if (is_in_hook) return;  // the call is a hook's own
  const std::lock_guard lock(TheHooks().mutex);
  is_in_hook = true;
  if (TheHooks().*hook) (TheHooks().*hook)(args...);
  is_in_hook = false;
}

template <typename F>
F* Next(const char* name) {
  return reinterpret_cast<F*>(dlsym(RTLD_NEXT, name));  // NOLINT: as dlsym(3) has it
}

}  // namespace

// NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): the C library's
extern "C" {
int fsync(int file) {
  const int result = Next<int(int)>("fsync")(file);
  if (result == 0) CallHook(&Hooks::synced, file);
  return result;
}
int fdatasync(int file) {
  const int result = Next<int(int)>("fdatasync")(file);
  if (result == 0) CallHook(&Hooks::synced, file);
  return result;
}
int renameat(int from, const char* old, int to, const char* name) noexcept {
  const int result = Next<int(int, const char*, int, const char*)>("renameat")(from, old, to, name);
  CallHook(&Hooks::renamed);
  return result;
}
int unlinkat(int directory, const char* name, int flags) noexcept {
  const int result = Next<int(int, const char*, int)>("unlinkat")(directory, name, flags);
  CallHook(&Hooks::renamed);
  return result;
}
int mkdirat(int directory, const char* name, mode_t mode) noexcept {
  CallHook(&Hooks::making, name);
  return Next<int(int, const char*, mode_t)>("mkdirat")(directory, name, mode);
}
}
// NOLINTEND(readability-inconsistent-declaration-parameter-name)

namespace xenoscope::recording {
namespace {

namespace fs = std::filesystem;

constexpr VcpuRef kVcpu{DomainId{3}, VcpuId{1}};
constexpr const char* kKallsyms = "ffffffff81000000 T _text\n";

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

ino_t InodeOf(const fs::path& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

// The content of a directory on disk, as far as fsync(2) promises it: a file's content when the
// file is synced, a directory's entries when the directory is.
class FakeDisk {
 public:
  void Synced(int file) {
    const fs::path path = "/proc/self/fd/" + std::to_string(file);
    struct stat status {};
    if (fstat(file, &status) != 0) return;
    Known(path);
    if (!S_ISDIR(status.st_mode)) {
      content_[status.st_ino] = ReadFile(path);
      return;
    }
    std::map<std::string, ino_t>& entries = entries_[status.st_ino];
    entries.clear();
    for (const auto& entry : fs::directory_iterator(path)) {
      entries[entry.path().filename()] = Known(entry.path());
    }
  }
  // Models file systems that write names to the disk before they are asked to, but no content.
  void BringNames(const fs::path& directory) {
    std::map<std::string, ino_t>& entries = entries_[InodeOf(directory)];
    entries.clear();
    for (const auto& entry : fs::directory_iterator(directory)) {
      entries[entry.path().filename()] = Known(entry.path());
      if (entry.is_directory()) BringNames(entry.path());
    }
  }
  // Makes `to` the content of the directory `name` after a power cut.
  void PutBack(ino_t directory, const fs::path& to) const {
    fs::create_directory(to);
    const auto entries = entries_.find(directory);
    if (entries == entries_.end()) return;
    for (const auto& [name, inode] : entries->second) {
      const auto content = content_.find(inode);
      if (directories_.contains(inode)) {
        PutBack(inode, to / name);
      } else {
        std::ofstream(to / name) << (content == content_.end() ? "" : content->second);
      }
    }
  }
  void Look(const fs::path& directory) {
    directories_[InodeOf(directory)] = true;
    for (const auto& entry : fs::directory_iterator(directory)) {
      if (entry.is_directory()) Look(entry.path());
    }
  }

 private:
  // Returns the file's inode, which stays its own, as the file is held open.
  ino_t Known(const fs::path& path) {
    const auto file = std::make_shared<File>(open(path.c_str(), O_PATH | O_CLOEXEC));
    struct stat status {};
    EXPECT_EQ(fstat(file->fd(), &status), 0);
    held_.try_emplace(status.st_ino, file);
    return status.st_ino;
  }

  std::map<ino_t, std::shared_ptr<File>> held_;
  std::map<ino_t, std::string> content_;
  std::map<ino_t, std::map<std::string, ino_t>> entries_;
  std::map<ino_t, bool> directories_;
};

class PowerCutTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "power_cut_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
    fs::create_directory(root_ / "disk");
  }
  void TearDown() override {
    {
      const std::lock_guard lock(TheHooks().mutex);
      TheHooks().synced = nullptr;
      TheHooks().renamed = nullptr;
      TheHooks().making = nullptr;
    }
    fs::remove_all(root_);
  }

  std::string Recorded() const { return (root_ / "disk/a.xeno").string(); }

  // From now on, looks after each call at what a power cut would leave.
  void CutThePowerAtEachCall() {
    const std::lock_guard lock(TheHooks().mutex);
    TheHooks().synced = [this](int file) {
      disk_.Synced(file);
      CheckBoth();
    };
    TheHooks().renamed = [this] { CheckBoth(); };
  }
  void CheckBoth() {
    disk_.Look(root_ / "disk");
    Check(disk_, "only what was synced");
    FakeDisk eager = disk_;
    eager.BringNames(root_ / "disk");
    Check(eager, "names before content");
  }
  void Check(const FakeDisk& disk, const std::string& how) {
    ++cuts_;
    const fs::path left = root_ / "left";
    fs::remove_all(left);
    disk.PutBack(InodeOf(root_ / "disk"), left);
    const fs::path recorded = left / "a.xeno";
    if (!fs::exists(recorded / "recording.json")) {
      EXPECT_FALSE(must_be_there_) << how;
      return;
    }
    const auto recording = Recording::Open(recorded.string());
    ASSERT_TRUE(recording.ok()) << how << ": " << recording.status();
    CheckContent(*recording, how);
  }
  void CheckContent(const Recording& recording, const std::string& how) const {
    const bool complete = recording.info().state == State::kComplete;
    auto stream = recording.OpenSamples(0);
    ASSERT_TRUE(stream.ok()) << how << ": " << stream.status();
    size_t samples = 0;
    while (stream->reader.Next() != nullptr) ++samples;
    EXPECT_FALSE(stream->reader.damage().Any()) << how;
    EXPECT_GE(samples, complete ? written_ : on_disk_) << how;
    EXPECT_GE(samples, recording.info().streams.empty() ? 0 : recording.info().streams[0].kept)
        << how << ": the accounts tell of samples that are not there";
    const auto trace = recording.OpenTrace();
    ASSERT_TRUE(trace.ok()) << how << ": " << trace.status();
    EXPECT_GE(ReadFile(trace->path()).size(), complete ? written_ : on_disk_) << how;
    for (const SymbolFile& file : recording.info().symbols) {
      const auto symbols = recording.OpenSymbols(file);
      ASSERT_TRUE(symbols.ok()) << how << ": " << symbols.status();
      EXPECT_EQ(ReadFile(symbols->path()), kKallsyms) << how;
    }
  }

  fs::path root_;
  FakeDisk disk_;
  size_t cuts_ = 0;
  bool must_be_there_ = false;
  size_t written_ = 0;  // number of samples, and bytes of the trace, that were written
  size_t on_disk_ = 0;  // those of them that are promised to be on the disk
};

RecordingInfo InfoOf(State state, uint64_t kept) {
  RecordingInfo info;
  info.state = state;
  info.sources = {{.name = "xenoprof", .cpu_type = "", .drain_interval_ns = 0}};
  info.events = {{.name = "cpu_clk_unhalted", .code = 0x76, .period = 100000, .clocked_by = "pmu"}};
  StreamInfo stream;
  stream.source = "xenoprof";
  stream.vcpu = kVcpu;
  stream.drained = stream.kept = kept;
  info.streams = {stream};
  return info;
}

void AppendOne(SampleWriter& samples, int trace) {
  samples.Append(kVcpu, {Tsc{1}, Tsc{2}, Tsc{3}}, std::array{Entry{}});
  ASSERT_TRUE(samples.Flush().ok());
  ASSERT_EQ(write(trace, "t", 1), 1);
}

TEST_F(PowerCutTest, DiskHasAValidRecordingAtEveryInstant) {
  CutThePowerAtEachCall();
  const auto writer = Writer::Create(Recorded());
  ASSERT_TRUE(writer.ok()) << writer.status();
  auto samples = writer->CreateSamples("xenoprof");
  const auto trace = writer->CreateTrace();
  ASSERT_TRUE(samples.ok() && trace.ok());
  RecordingInfo info = InfoOf(State::kRecording, 0);
  const auto add = [&](DomainId domain) {
    auto added =
        writer->AddSymbolContent(SymbolFile::Kind::kKallsyms, domain, AsBytes(kKallsyms), "");
    ASSERT_TRUE(added.ok()) << added.status();
    info.symbols.push_back(*std::move(added));
  };
  add(kDom0);
  ASSERT_TRUE(writer->Sync().ok());
  ASSERT_TRUE(writer->WriteInfo(info).ok());
  ASSERT_TRUE(writer->Sync().ok());
  must_be_there_ = true;
  TreeSync tree;
  for (int i = 0; i < 12; ++i) {
    AppendOne(*samples, trace->fd());
    ++written_;
    if (i % 3 != 2) continue;
    ASSERT_TRUE(tree.Sync(writer->directory()).ok());
    on_disk_ = written_;
    info.streams[0].drained = info.streams[0].kept = written_;
    ASSERT_TRUE(writer->WriteInfo(info).ok());
  }
  AppendOne(*samples, trace->fd());
  ++written_;
  add(DomainId{3});  // as agents' are, which come in the end
  info.state = State::kComplete;
  info.streams[0].drained = info.streams[0].kept = written_;
  ASSERT_TRUE(writer->WriteInfo(info).ok());
  EXPECT_GT(cuts_, 60U);
  EXPECT_EQ(Recording::Open((root_ / "left/a.xeno").string())->info().state, State::kComplete);
}

TEST_F(PowerCutTest, DataReachesTheDiskWhileRecording) {
  CutThePowerAtEachCall();
  const auto writer = Writer::Create(Recorded());
  ASSERT_TRUE(writer.ok()) << writer.status();
  auto samples = writer->CreateSamples("xenoprof");
  const auto trace = writer->CreateTrace();
  ASSERT_TRUE(samples.ok() && trace.ok() && writer->Sync().ok());
  ASSERT_TRUE(writer->WriteInfo(InfoOf(State::kRecording, 0)).ok());
  DiskSync sync(*writer, std::chrono::milliseconds(1));
  for (int i = 0; i < 5; ++i) AppendOne(*samples, trace->fd());
  sync.WriteInfo(InfoOf(State::kRecording, 5));
  const auto kept_on_disk = [this]() -> uint64_t {
    const std::lock_guard lock(TheHooks().mutex);
    const auto left = Recording::Open((root_ / "left/a.xeno").string());
    return left.ok() ? left->info().streams[0].kept : 0;
  };
  while (kept_on_disk() < 5) {  // the test's own time limit ends it when that does not happen
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_TRUE(sync.Stop().ok());
}

// Others may write to the directory above, between Create's checks and its mkdir.
TEST_F(PowerCutTest, RefusesReplacedDirectoryAndLeavesItUnchanged) {
  const fs::path victim = root_ / "victim";
  const fs::path trap = root_ / "trap";
  for (const std::string name : {"recording.json", ".reserve", "trace.xentrace"}) {
    fs::create_directories(trap / "samples");
    fs::create_symlink(victim, trap / name);
  }
  fs::create_symlink(victim, trap / "samples/xenoprof.samples");
  for (const bool link : {false, true}) {
    std::ofstream(victim) << "precious";
    ASSERT_TRUE(Writer::Create(Recorded())->WriteInfo(InfoOf(State::kComplete, 0)).ok());
    TheHooks().making = [&](const char* name) {
      if (std::string(name) != "a.xeno" || fs::exists(fs::symlink_status(Recorded()))) return;
      if (link) {
        fs::create_directory_symlink(trap, Recorded());
      } else {
        fs::copy(trap, Recorded(), fs::copy_options::recursive | fs::copy_options::copy_symlinks);
      }
    };
    EXPECT_EQ(Writer::Create(Recorded()).status().code(), absl::StatusCode::kAlreadyExists);
    TheHooks().making = nullptr;
    EXPECT_EQ(ReadFile(victim), "precious");
    EXPECT_TRUE(Recording::Open(Recorded() + ".old").ok());
    fs::remove_all(Recorded());
    fs::remove_all(Recorded() + ".old");
  }
}

}  // namespace
}  // namespace xenoscope::recording
