// The recorder makes a recording, from nothing running to nothing running:
//
//   open the sources | make the recording, its symbols and recording.json | start xentrace | start
//   sampling, then the command | collect samples until it is over | stop sampling | stop xentrace |
//   wait for guests: their last samples, their files | give back what the sources hold | the last
//   recording.json
//
// Whatever happens, all that was started is stopped. A signal ends the recording; while agents are
// waited for, before sampling or after it, a signal ends that wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "recording/info.h"
#include "sampler/child_process.h"
#include "sampler/sources.h"
#include "sampler/xen/xentrace.h"

namespace xenoscope::sampler {

// A file from the user that maps addresses of a domain to names.
struct GuestFile {
  recording::SymbolFile::Kind kind;
  std::string domain;
  std::string path;
};

// The options of a recording.
struct RecordRequest {
  std::string output;
  std::optional<SampleRequest> samples;
  std::optional<TraceRequest> trace;
  bool threads = false;  // whether dom0's kernel says which thread it runs (sampler/ftrace),
  std::vector<std::string>
      kernel_events;                   // and with that these events (sampler/ftrace/event_list.h)
  std::vector<std::string> functions;  // and functions (sampler/ftrace/function_patterns.h)
  // Guests, by name or id, whose boots are to be in the recording. It does not end with the command
  // then, but when these guests' agents can be asked. They need not exist yet.
  std::vector<std::string> boot;
  // Guests, by name or id, that shut down during the recording. It does not end with the command
  // then, but when Xen has removed them.
  std::vector<std::string> shutdown;
  std::vector<GuestFile> guest_files;
  // Raise dom0's weight for the length of the recording (sampler/xen/weight_boost.h).
  bool boost = false;
  // Command that runs during the recording; none: until a signal, for `duration`, or until guests
  // have booted or shut down.
  std::vector<std::string> command;
  std::optional<std::chrono::nanoseconds> duration;
  std::string written_by;
  // Called right after sampling has begun, before the command, and right before it ends: what is
  // read then is of the same time as the samples. Empty: nothing is called.
  std::function<void()> on_began{};
  std::function<void()> on_ending{};
  // Called after each step of about 50 ms during sampling, in which what was collected before has
  // been written. Its error ends the recording. Empty: nothing is called.
  std::function<absl::Status()> on_step{};
};

// The progress of a recording.
struct Progress {
  std::chrono::nanoseconds elapsed;
  uint64_t samples = 0;
  uint64_t lost = 0;
  uint64_t sample_bytes = 0;
  uint64_t trace_bytes = 0;
  uint64_t lost_records = 0;                  // records of the trace that found their buffer full
  double lost_time = 0;                       // part of the pCPUs' time in which that was so
  uint64_t disk_left = 0;                     // bytes that are free where the recording is
  std::chrono::nanoseconds own_cpu{0};        // processor time of recording, xentrace's included
  std::map<std::string, uint64_t> of_domain;  // samples by the domain's name or number
};

// The result of a recording.
struct RecordResult {
  recording::RecordingInfo info;
  Progress last;
  // Notes for the user: what could not be had, though the recording is good.
  std::vector<std::string> notes;
  absl::Status status;  // what ended it early: a full disk, xentrace's end
  // The end of the command, if it ended before the recording.
  std::optional<Exit> command_exit;
};

// Makes a recording. Errors: nothing could be recorded. A result, even with an error as status,
// leaves a recording. `progress` is called about once a second.
absl::StatusOr<RecordResult> Record(const RecordRequest& request,
                                    const std::function<void(const Progress&)>& progress);

}  // namespace xenoscope::sampler
