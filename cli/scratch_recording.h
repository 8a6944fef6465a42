// A temporary recording that is read while it is being made, and removed afterwards.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "cli/scratch_directory.h"
#include "sampler/child_process.h"
#include "sampler/signals.h"

namespace xenoscope::cli {

// `xenoscope record` in a child process, which ends when this process ends for any reason.
class ScratchRecording {
 public:
  // Starts `record` with these arguments in a directory of its own, and waits until the recording
  // exists. Errors: those of `record`; Cancelled when a signal comes first.
  static absl::StatusOr<ScratchRecording> Start(std::span<const std::string> arguments,
                                                const sampler::EndSignals& signals);

  ScratchRecording(ScratchRecording&& other) = default;
  ScratchRecording& operator=(ScratchRecording&& other) = default;
  ScratchRecording(const ScratchRecording&) = delete;
  ScratchRecording& operator=(const ScratchRecording&) = delete;
  // Ends `record` and removes the recording.
  ~ScratchRecording();

  std::string path() const { return directory_.path() + "/top.xeno"; }
  // Returns OK while `record` runs, and otherwise its error.
  absl::Status Check();

 private:
  ScratchRecording(ScratchDirectory directory, sampler::ChildProcess record)
      : directory_(std::move(directory)), record_(std::move(record)) {}

  ScratchDirectory directory_;
  sampler::ChildProcess record_;
};

}  // namespace xenoscope::cli
