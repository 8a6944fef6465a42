#include "cli/slice_pusher.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/own_command.h"
#include "sampler/child_process.h"

namespace xenoscope::cli {
namespace {

constexpr std::chrono::milliseconds kPollInterval{50};
constexpr int kPushStopTimeoutMs = 1000;

}  // namespace

SlicePusher::SlicePusher(const recording::SliceRing& ring, std::string url)
    : ring_(ring), url_(std::move(url)), thread_([this] { Run(); }) {}

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
  std::vector<std::string> words = OwnCommand();
  words.insert(words.end(), {"push", ring_.PathOf(name), "--to", url_, "--quiet"});
  auto child = sampler::ChildProcess::Start(words, {.own_process_group = true});
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
