// Pushes the slices of a ring to a store while the next ones are recorded, and joins old ones
// there.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "recording/slice_ring.h"

namespace xenoscope::cli {

// Runs `xenoscope push` for each slice, one at a time: what is recorded is not trusted, and that
// command restricts itself. A slice that cannot be pushed stays in the queue, and is tried again
// after the next slice.
//
// Slices that this host began before `join_after_ns` nanoseconds become one for each hour, as
// `xenoscope prune --join` makes it: when the pusher begins, and whenever another hour is as old.
// What could not be joined is joined an hour later.
class SlicePusher {
 public:
  // The ring outlives the pusher. Its thread takes no signal that the caller has blocked.
  // `join_after_ns` of 0: slices stay as they are.
  SlicePusher(const recording::SliceRing& ring, std::string url, int64_t join_after_ns);
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
  // Joins the slices of hours that have become old since the last call.
  void JoinOld();
  // Runs this program with these words. Returns whether it succeeded; it says why not.
  [[nodiscard]] bool RunOwn(const std::vector<std::string>& words) const;

  const recording::SliceRing& ring_;
  std::string url_;
  int64_t join_after_ns_;
  int64_t joined_until_ns_ = 0;  // hours before this have been joined
  std::atomic<uint64_t> pushed_ = 0;
  std::atomic<bool> ending_ = false;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string end_;   // the newest name that Push was given
  std::string done_;  // the newest one that was tried
  std::thread thread_;
};

}  // namespace xenoscope::cli
