#include "base/write_behind.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace xenoscope {

WriteBehind::WriteBehind(int file) : file_(file) {
  struct stat status = {};
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return;
  begin_ = written_out_ = evicted_ = evicted_again_ = end_ = lseek(file, 0, SEEK_CUR);
  thread_ = std::thread([this] { Run(); });
}

WriteBehind::~WriteBehind() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  step_written_.notify_one();
  thread_.join();
}

void WriteBehind::OnWritten() {
  if (!thread_.joinable()) return;
  const off_t end = lseek(file_, 0, SEEK_CUR);
  const std::lock_guard lock(mutex_);
  if (end - end_ < kStep) return;
  end_ = end;
  step_written_.notify_one();
}

void WriteBehind::Run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    step_written_.wait(lock, [&] { return done_ || end_ > written_out_; });
    if (end_ == written_out_) return;
    const off_t end = end_;
    lock.unlock();
    // Errors are ignored: the writes themselves report them, and file systems without this call
    // lose nothing.
    (void)sync_file_range(file_, written_out_, end - written_out_, SYNC_FILE_RANGE_WRITE);
    written_out_ = end;
    if (end - begin_ > kShortBytes) EvictTo(end - kCachedBytes);
    lock.lock();
  }
}

void WriteBehind::EvictTo(off_t end) {
  (void)posix_fadvise(file_, evicted_, end - evicted_, POSIX_FADV_DONTNEED);
  evicted_ = end;
  const off_t again = end - kSecondTimeAfter;
  if (again <= evicted_again_) return;
  (void)posix_fadvise(file_, evicted_again_, again - evicted_again_, POSIX_FADV_DONTNEED);
  evicted_again_ = again;
}

}  // namespace xenoscope
