// Collects from a source on a thread of its own, so that nothing that waits (for the disk, for
// xenstore) delays a drain: what it collects stays in memory until somebody takes it.
//
//   source --Collect, when due--> (the thread) --batches--> Take --> whoever writes them
//
// Between Start and Stop the thread alone touches the source; who wants something of it asks, and
// is served between two drains. So the thread never waits until somebody else has done with the
// source.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "base/sketch.h"
#include "recording/info.h"
#include "recording/sample_writer.h"
#include "sampler/source.h"

namespace xenoscope::sampler {

class Collector {
 public:
  // Whole chunks of samples (recording/sample_format.h), in their order.
  using Batches = std::deque<std::vector<std::byte>>;
  static constexpr size_t kMaxQueuedBytes = size_t{256} << 20;

  // While more than `max_queued` bytes wait to be taken it does not collect.
  explicit Collector(std::unique_ptr<Source> source, size_t max_queued = kMaxQueuedBytes)
      : source_(std::move(source)), max_queued_(max_queued) {}
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  // Ends the thread; the source closes.
  ~Collector() { End(); }

  // The source, which between Start and Stop is the thread's own.
  Source& source() { return *source_; }
  const Source& source() const { return *source_; }

  // Starts the source, then collects.
  absl::Status Start();
  bool started() const { return thread_.joinable(); }
  // Calls `task` between two drains, and returns when that was done. At any time, by one thread.
  void RunOnThread(std::function<void(Source&)> task);
  // Lets the thread stop the source when the drain that goes on is done, and does not wait for
  // that.
  void BeginStop();
  // The same, and waits until it is stopped; what it had left can then be taken.
  absl::Status Stop();

  // What was collected and not taken yet.
  Batches Take();
  // Why it has ended by itself: the source's error.
  absl::Status status() const;
  // How its drains came, up to now.
  recording::DrainInfo Drains() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  void Run();
  void End();
  // Until the next drain is to be made; false: there is none. Does tasks meanwhile.
  bool WaitUntilDue(Lock& lock);
  void WaitForRoom(Lock& lock);
  void RunTask();
  void Drain(Lock& lock);
  void StopSource(Lock& lock);
  void Add(std::vector<std::byte> chunks);
  bool HasRoom() const { return queued_ <= max_queued_; }

  const std::unique_ptr<Source> source_;
  const size_t max_queued_;
  recording::SampleWriter writer_ = recording::SampleWriter::InMemory();  // the thread's

  mutable std::mutex mutex_;  // of all below
  std::condition_variable wake_;
  std::condition_variable task_done_;
  std::function<void(Source&)> task_;
  bool is_running_ = false;  // does tasks
  bool end_requested_ = false;
  bool stop_requested_ = false;  // the source, before the thread ends
  absl::Status error_;
  absl::Status stop_status_;
  Batches batches_;
  size_t queued_ = 0;  // bytes, in batches_
  Clock::time_point last_drain_;
  Sketch intervals_;                 // from drain to drain, ns
  Clock::duration blocked_time_{0};  // for want of room
  size_t peak_queued_ = 0;           // bytes
  std::thread thread_;
};

}  // namespace xenoscope::sampler
