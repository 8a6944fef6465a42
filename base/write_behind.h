// Writes a long file without filling the machine's memory with it.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace xenoscope {

// Follows what is written to a regular file: lets the kernel write it out at once, and drop all but
// the last pages of a long one. Dom0s are small: a dump of gigabytes would drive the trace that is
// being read out of memory, and a page that is used again is cheaper than a new one, the more so if
// it is in the processor's cache. A thread does it, as the kernel may make it wait for a slow disk;
// the kernel is asked a second time to drop what was not written out in time, and keeps it if it is
// not written out then, either. Does nothing for a file that is not a regular one.
class WriteBehind {
 public:
  // A file up to this size stays in memory: people look at it next.
  static constexpr off_t kShortBytes = off_t{64} << 20;
  // The bytes of a longer one that stay in memory, and the bytes that are written out at a time.
  static constexpr off_t kCachedBytes = off_t{16} << 20;
  static constexpr off_t kStep = off_t{2} << 20;

  explicit WriteBehind(int file);
  ~WriteBehind();
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  // Notes that something was written. To be called after each write, by any thread.
  void OnWritten();

 private:
  // The kernel is asked a second time to drop pages when so many bytes behind them have been
  // dropped.
  static constexpr off_t kSecondTimeAfter = off_t{256} << 20;

  void Run();
  // Asks the kernel to drop the pages up to `end`.
  void EvictTo(off_t end);

  int file_;
  off_t begin_ = 0;  // the file's end when the following began
  // Used by the thread only.
  off_t written_out_ = 0;
  off_t evicted_ = 0;
  off_t evicted_again_ = 0;
  std::mutex mutex_;
  std::condition_variable step_written_;
  off_t end_ = 0;      // guarded by mutex_: the file's end when a step was last full
  bool done_ = false;  // guarded by mutex_
  std::thread thread_;
};

}  // namespace xenoscope
