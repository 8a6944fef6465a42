// Pushes the slices of a ring to a store while the next ones are recorded.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

#include "recording/slice_ring.h"

namespace xenoscope::cli {

// Runs `xenoscope push` for each slice, one at a time: what is recorded is not trusted, and that
// command restricts itself. A slice that cannot be pushed stays in the queue, and is tried again
// after the next slice.
class SlicePusher {
 public:
  // The ring outlives the pusher. Its thread takes no signal that the caller has blocked.
  SlicePusher(const recording::SliceRing& ring, std::string url);
  SlicePusher(const SlicePusher&) = delete;
  SlicePusher& operator=(const SlicePusher&) = delete;
  // Ends the push that runs.
  ~SlicePusher();

  // The slices before this name are complete.
  void Push(const std::string& end);
  // Waits until all slices that are complete have been tried once.
  void Flush();
  // Returns how many slices were pushed.
  [[nodiscard]] uint64_t pushed() const { return pushed_; }

 private:
  void Run();
  // Tries the queue's slices before `end`.
  void PushQueue(const std::string& end);
  // Returns whether the store has the slice now.
  [[nodiscard]] bool PushOne(const std::string& name) const;

  const recording::SliceRing& ring_;
  std::string url_;
  std::atomic<uint64_t> pushed_ = 0;
  std::atomic<bool> ending_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string end_;   // the newest name that Push was given
  std::string done_;  // the newest one that was tried
  std::thread thread_;
};

}  // namespace xenoscope::cli
