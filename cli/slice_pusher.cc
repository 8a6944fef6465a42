#include "cli/slice_pusher.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/own_command.h"
#include "cli/time_of_day.h"
#include "sampler/child_process.h"
#include "sampler/xen/host.h"

namespace xenoscope::cli {
namespace {

constexpr std::chrono::milliseconds kPollInterval{50};
constexpr int kPushStopTimeoutMs = 1000;
// Length of what old slices are joined to, in nanoseconds.
constexpr int64_t kJoinedNs = int64_t{3600} * 1'000'000'000;
constexpr char kJoined[] = "1h";

}  // namespace

SlicePusher::SlicePusher(const recording::SliceRing& ring, std::string url, int64_t join_after_ns)
    : ring_(ring),
      url_(std::move(url)),
      join_after_ns_(join_after_ns),
      thread_([this] { Run(); }) {}

SlicePusher::~SlicePusher() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void SlicePusher::Push(const std::string& end) {
  {
    const std::lock_guard lock(mutex_);
    end_ = end;
  }
  changed_.notify_all();
}

void SlicePusher::Flush() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return done_ == end_; });
}

void SlicePusher::Run() {
  while (true) {
    std::string end;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return ending_ || done_ != end_; });
      if (ending_) return;
      end = end_;
    }
    PushQueue(end);
    if (!ending_) JoinOld();
    {
      const std::lock_guard lock(mutex_);
      done_ = end;
    }
    changed_.notify_all();
  }
}

void SlicePusher::PushQueue(const std::string& end) {
  const auto queued = ring_.Queued(end);
  if (!queued.ok()) {
    fmt::print(stderr, "xenoscope: {}\n", Message(queued.status()));
    return;
  }
  for (const std::string& name : *queued) {
    if (ending_) return;
    if (!PushOne(name)) continue;
    ++pushed_;
    const absl::Status marked = ring_.MarkPushed(name);
    if (!marked.ok()) fmt::print(stderr, "xenoscope: {}\n", Message(marked));
  }
}

bool SlicePusher::PushOne(const std::string& name) const {
  return RunOwn({"push", ring_.PathOf(name), "--to", url_, "--quiet"});
}

void SlicePusher::JoinOld() {
  if (join_after_ns_ == 0) return;
  const auto now_ns = static_cast<int64_t>(sampler::ReadWallClock().utc_ns);
  const int64_t until_ns = (now_ns - join_after_ns_) / kJoinedNs * kJoinedNs;
  if (until_ns <= joined_until_ns_) return;
  joined_until_ns_ = until_ns;
  const std::string host = sampler::ReadHostInfo().name;
  (void)RunOwn(
      {"prune", url_, "--join", kJoined, "--host", host, "--until", TimeOfDayText(until_ns)});
}

bool SlicePusher::RunOwn(const std::vector<std::string>& words) const {
  auto child = StartOwn(words);
  if (!child.ok()) {
    fmt::print(stderr, "xenoscope: {}\n", Message(child.status()));
    return false;
  }
  while (!child->Poll()) {
    if (ending_) child->Stop(kPushStopTimeoutMs);
    std::this_thread::sleep_for(kPollInterval);
  }
  return child->Poll()->Succeeded();
}

}  // namespace xenoscope::cli
