// Makes a recording, from nothing running to nothing running:
//
//   open the sources | make the recording, its symbols and recording.json | start xentrace | start
//   sampling, then the command | collect samples until it is over | stop sampling | stop xentrace |
//   wait for guests: their last samples, their files | give back what the sources hold | the last
//   recording.json
//
// What has been started is stopped, whatever happens in between. A signal ends the recording; one
// that comes while agents are waited for, before sampling or after it, ends that wait.
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

// A file of the user's that names addresses of a domain.
struct GuestFile {
  recording::SymbolFile::Kind kind;
  std::string domain;
  std::string path;
};

struct RecordRequest {
  std::string output;
  std::optional<SampleRequest> samples;
  std::optional<TraceRequest> trace;
  std::vector<GuestFile> guest_files;
  std::vector<std::string> command;  // none: until a signal, or for `duration`
  std::optional<std::chrono::nanoseconds> duration;
  std::string written_by;
};

struct Progress {
  std::chrono::nanoseconds elapsed;
  uint64_t samples = 0;
  uint64_t lost = 0;
  uint64_t sample_bytes = 0;
  uint64_t trace_bytes = 0;
  uint64_t lost_records = 0;                  // of the trace, found their buffer full
  double lost_time = 0;                       // part of the pCPUs' time in which that was so
  uint64_t disk_left = 0;                     // bytes, where the recording is
  std::chrono::nanoseconds own_cpu{0};        // processor time of recording, with xentrace's
  std::map<std::string, uint64_t> of_domain;  // samples, by the domain's name or number
};

struct RecordResult {
  recording::RecordingInfo info;
  Progress last;
  std::vector<std::string> notes;  // for the user: what could not be had, though all else went well
  absl::Status status;             // what ended it before its time: a full disk, xentrace's end
  // How the command ended, where that ended the recording.
  std::optional<Exit> command_exit;
};

// Errors: nothing could be recorded. A result, even one whose status is an error, leaves a
// recording. `progress` is called about once a second.
absl::StatusOr<RecordResult> Record(const RecordRequest& request,
                                    const std::function<void(const Progress&)>& progress);

}  // namespace xenoscope::sampler
