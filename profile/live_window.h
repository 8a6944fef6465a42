// The last seconds of a recording that is still being made. Its files only grow: what came after
// some instant is behind where they ended then.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/tsc.h"
#include "recording/recording.h"

namespace xenoscope::profile {

class LiveWindow {
 public:
  // A window of `length`, of the recording at `path`.
  LiveWindow(std::string path, std::chrono::nanoseconds length)
      : path_(std::move(path)), length_(length) {}

  // What of the recording lies in the window.
  struct Part {
    TscRange range;                       // everything that was taken in it has been written
    uint64_t trace_begin = 0;             // bytes of the files that come before
    std::vector<uint64_t> samples_begin;  // by source
  };

  // Looks how long the files are; to be called about once a second. `when` and `tsc` are the time
  // now by both clocks. Returns the part between the look before and the one a window's length
  // before that: what was taken up to then has been written by now. Empty after the first look.
  Part Advance(const recording::RecordingInfo& info, std::chrono::steady_clock::time_point when,
               Tsc tsc);

  // Gives the disk space of what has left the window back. Only for recordings that nobody wants
  // to read afterwards.
  void PunchHoles(const recording::RecordingInfo& info, const Part& part) const;

 private:
  std::string Path(std::string_view name) const;

  struct Mark {
    std::chrono::steady_clock::time_point when;
    Tsc tsc;
    uint64_t trace_bytes = 0;
    std::vector<uint64_t> sample_bytes;  // by source
  };

  std::string path_;
  std::chrono::nanoseconds length_;
  std::deque<Mark> marks_;
};

}  // namespace xenoscope::profile
