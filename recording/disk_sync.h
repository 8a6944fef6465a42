// A thread that keeps writing a growing recording to the disk, so that a power cut costs the last
// seconds and no more. It is a thread of its own because a disk may take seconds, for which a
// recorder cannot wait.
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

// Time from the start of one sync to the start of the next: as often as Linux's file systems commit
// by themselves (ext4(5), commit), so that it costs the host little.
inline constexpr std::chrono::nanoseconds kSyncInterval = std::chrono::seconds(5);

class DiskSync {
 public:
  // Starts the thread. `writer` must outlive it.
  explicit DiskSync(const Writer& writer, std::chrono::nanoseconds interval = kSyncInterval);
  DiskSync(const DiskSync&) = delete;
  DiskSync& operator=(const DiskSync&) = delete;
  ~DiskSync() { Stop().IgnoreError(); }

  // Replaces recording.json soon; returns at once. If more of them come than the disk takes, the
  // newest is written. If the write fails, the last one stays.
  void WriteInfo(RecordingInfo info);

  // Waits for the sync in progress and ends the thread. Errors: those of status().
  absl::Status Stop();

  // Returns the first error of writing to the disk; after it the disk may have less than was
  // written.
  absl::Status status() const;

 private:
  using Clock = std::chrono::steady_clock;

  void Run();

  const Writer& writer_;
  const std::chrono::nanoseconds interval_;
  TreeSync tree_;  // used by the thread only

  mutable std::mutex mutex_;  // guards all members below
  std::condition_variable wake_;
  std::optional<RecordingInfo> info_;  // the recording.json to be written next
  bool end_requested_ = false;
  absl::Status status_;
  std::thread thread_;
};

}  // namespace xenoscope::recording
