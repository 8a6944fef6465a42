// A collector drains a source on a thread of its own, so that nothing that waits (for the disk, for
// xenstore) delays a drain. What it collects stays in memory until it is taken.
//
//   source --Collect, when due--> (the thread) --batches--> Take --> the writer
//
// Between Start and Stop only the thread touches the source. Other threads give it tasks, which it
// runs between two drains, so it never waits for another user of the source.
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
  // Whole chunks of samples (recording/sample_format.h), in the order of collection.
  using Batches = std::deque<std::vector<std::byte>>;
  static constexpr size_t kMaxQueuedBytes = size_t{256} << 20;

  // While more than `max_queued` bytes wait to be taken, the thread does not collect.
  explicit Collector(std::unique_ptr<Source> source, size_t max_queued = kMaxQueuedBytes)
      : source_(std::move(source)), max_queued_(max_queued) {}
  Collector(const Collector&) = delete;
  Collector& operator=(const Collector&) = delete;
  // Ends the thread; the source closes.
  ~Collector() { End(); }

  // Returns the source, which between Start and Stop belongs to the thread.
  Source& source() { return *source_; }
  [[nodiscard]] const Source& source() const { return *source_; }

  // Starts the source, then the thread.
  absl::Status Start();
  [[nodiscard]] bool started() const { return thread_.joinable(); }
  // Calls `task` between two drains, and returns when that is done. At any time, from one thread
  // only.
  void RunOnThread(std::function<void(Source&)> task);
  // Lets the thread stop the source after the current drain, without waiting for it.
  void BeginStop();
  // Stops the source and waits for that; then its last samples can be taken.
  absl::Status Stop();

  // Returns what was collected and not taken yet.
  Batches Take();
  // Returns the source's error if that ended the collection.
  absl::Status status() const;
  // Returns the statistics of drains up to now.
  [[nodiscard]] recording::DrainInfo Drains() const;

 private:
  using Clock = std::chrono::steady_clock;
  using Lock = std::unique_lock<std::mutex>;

  void Run();
  void End();
  // Waits until the next drain is due, and runs tasks meanwhile. False: there is no next drain.
  bool WaitUntilDue(Lock& lock);
  void WaitForRoom(Lock& lock);
  void RunTask();
  void Drain(Lock& lock);
  void StopSource(Lock& lock);
  void Add(std::vector<std::byte> chunks);
  [[nodiscard]] bool HasRoom() const { return queued_ <= max_queued_; }

  const std::unique_ptr<Source> source_;
  const size_t max_queued_;
  recording::SampleWriter writer_ = recording::SampleWriter::InMemory();  // used by the thread only

  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable wake_;
  std::condition_variable task_done_;
  std::function<void(Source&)> task_;
  bool is_running_ = false;  // whether the thread runs tasks
  bool end_requested_ = false;
  bool stop_requested_ = false;  // whether to stop the source before the thread ends
  absl::Status error_;
  absl::Status stop_status_;
  Batches batches_;
  size_t queued_ = 0;  // bytes in batches_
  Clock::time_point last_drain_;
  Sketch intervals_;                 // ns from drain to drain
  Clock::duration blocked_time_{0};  // time that drains waited for room
  size_t peak_queued_ = 0;           // bytes
  std::thread thread_;
};

}  // namespace xenoscope::sampler
