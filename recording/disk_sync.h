// Keeps a recording that is being made on the disk, so that a power cut costs its last seconds and
// no more. On a thread of its own: a disk may take seconds, and who records has no time to wait.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>

#include "absl/status/status.h"
#include "recording/info.h"
#include "recording/tree_sync.h"
#include "recording/writer.h"

namespace xenoscope::recording {

// From one time that everything is brought to the disk to the next. As often as Linux's file
// systems commit by themselves (ext4(5), commit), so that it costs those who are recorded little.
inline constexpr std::chrono::nanoseconds kSyncInterval = std::chrono::seconds(5);

class DiskSync {
 public:
  // Begins. `writer` outlives it.
  explicit DiskSync(const Writer& writer, std::chrono::nanoseconds interval = kSyncInterval);
  DiskSync(const DiskSync&) = delete;
  DiskSync& operator=(const DiskSync&) = delete;
  ~DiskSync() { Stop().IgnoreError(); }

  // Replaces recording.json soon; returns at once. When more come than the disk takes, the newest
  // counts. Where it cannot be written the last one stays.
  void WriteInfo(RecordingInfo info);

  // Waits until what it does is done, and ends it. Errors: those of status().
  absl::Status Stop();

  // Why something did not get to the disk; after an error what is there may be less than was
  // written.
  absl::Status status() const;

 private:
  using Clock = std::chrono::steady_clock;

  void Run();

  const Writer& writer_;
  const std::chrono::nanoseconds interval_;
  TreeSync tree_;  // the thread's

  mutable std::mutex mutex_;  // of all below
  std::condition_variable wake_;
  std::optional<RecordingInfo> info_;  // to be written
  bool end_requested_ = false;
  absl::Status status_;
  std::thread thread_;
};

}  // namespace xenoscope::recording
