#include "recording/disk_sync.h"

#include <utility>

namespace xenoscope::recording {

DiskSync::DiskSync(const Writer& writer, std::chrono::nanoseconds interval)
    : writer_(writer), interval_(interval), thread_(&DiskSync::Run, this) {}

absl::Status DiskSync::Stop() {
  {
    const std::lock_guard lock(mutex_);
    end_requested_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  return status();
}

void DiskSync::WriteInfo(RecordingInfo info) {
  {
    const std::lock_guard lock(mutex_);
    info_ = std::move(info);
  }
  wake_.notify_one();
}

absl::Status DiskSync::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

void DiskSync::Run() {
  Clock::time_point due = Clock::now();
  std::unique_lock lock(mutex_);
  while (!end_requested_) {
    wake_.wait_until(lock, due, [this] { return end_requested_ || info_; });
    const std::optional<RecordingInfo> info = std::exchange(info_, std::nullopt);
    lock.unlock();
    absl::Status status;
    // Before recording.json: what it describes is on the disk first.
    if (Clock::now() >= due) {
      status = tree_.Sync(writer_.directory());
      due = Clock::now() + interval_;
    }
    if (info) writer_.WriteInfo(*info).IgnoreError();
    lock.lock();
    status_.Update(status);
  }
}

}  // namespace xenoscope::recording
