// A recording that is made to be looked at while it goes on, and that nobody keeps.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sampler/child_process.h"
#include "sampler/signals.h"

namespace xenoscope::cli {

// `xenoscope record` in a process of its own: it ends when this one does, however that comes.
class ScratchRecording {
 public:
  // Starts it with these arguments, in a directory of its own ($TMPDIR, else /tmp), and waits until
  // there is a recording. Removes what killed ones have left. Errors: what `record` says;
  // Cancelled: a signal has come before.
  static absl::StatusOr<ScratchRecording> Start(std::span<const std::string> arguments,
                                                const sampler::EndSignals& signals);

  ScratchRecording(ScratchRecording&& other) noexcept
      : directory_(std::exchange(other.directory_, "")), record_(std::move(other.record_)) {}
  ScratchRecording& operator=(ScratchRecording&& other) noexcept {
    std::swap(directory_, other.directory_);
    std::swap(record_, other.record_);
    return *this;
  }
  ScratchRecording(const ScratchRecording&) = delete;
  ScratchRecording& operator=(const ScratchRecording&) = delete;
  // Ends it and removes it.
  ~ScratchRecording();

  std::string path() const { return directory_ + "/top.xeno"; }
  // Whether it still goes on. Errors: what `record` has said if it does not.
  absl::Status Check();

 private:
  ScratchRecording(std::string directory, sampler::ChildProcess record)
      : directory_(std::move(directory)), record_(std::move(record)) {}

  std::string directory_;
  sampler::ChildProcess record_;
};

}  // namespace xenoscope::cli
