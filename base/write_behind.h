// A long file, written without filling the memory of the machine with it.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <mutex>
#include <thread>

namespace xenoscope {

// Follows what is written to a regular file, lets the kernel write out at once what it would keep
// for later, and give up the pages of all but the last of it. Dom0s are small: a dump of gigabytes
// would drive out the trace that is being read, and a page that is used again is cheaper than a new
// one. A thread does it, as the kernel may let it wait for a slow disk; what is not written out in
// time stays in memory, as ever. Does nothing where the file is none, or short.
class WriteBehind {
 public:
  // Bytes that stay in memory, and those that are written out at a time.
  static constexpr off_t kCachedBytes = off_t{64} << 20;
  static constexpr off_t kStep = off_t{8} << 20;

  explicit WriteBehind(int file);
  ~WriteBehind();
  WriteBehind(const WriteBehind&) = delete;
  WriteBehind& operator=(const WriteBehind&) = delete;

  // To be called after each write, by any thread.
  void OnWritten();

 private:
  void Run();

  int file_;
  off_t written_out_ = 0;  // the thread's
  off_t evicted_ = 0;      // likewise
  std::mutex mutex_;
  std::condition_variable step_written_;
  off_t end_ = 0;      // guarded by mutex_: the file's end when a step was last full
  bool done_ = false;  // likewise
  std::thread thread_;
};

}  // namespace xenoscope
