// The last seconds of a recording that is still being made. Its files only grow: data of after an
// instant lies behind the ends that the files had then.
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
  // Makes a window of `length` over the recording at `path`. It ends `lag` before the present, or a
  // little more: what was taken up to then is written by now.
  LiveWindow(std::string path, std::chrono::nanoseconds length, std::chrono::nanoseconds lag = {})
      : path_(std::move(path)), length_(length), lag_(lag) {}

  static constexpr uint64_t kAll = ~uint64_t{0};

  // The part of the recording in the window.
  struct Part {
    TscRange range;                       // range [begin, end); all that was taken in it is written
    uint64_t trace_begin = 0;             // offset in the trace's file, in bytes
    uint64_t trace_end = kAll;            // the same
    std::vector<uint64_t> samples_begin;  // offsets in the samples' files, by source
  };

  // Moves the window to the present lengths of the files; to be called about once a second. `when`
  // and `tsc` are the time now by both clocks. Returns the part between the last call before this
  // one that was the lag before it, and the call a window's length before that one: the samples up
  // to then have been written by now. Empty until there are two such calls.
  Part Advance(const recording::RecordingInfo& info, std::chrono::steady_clock::time_point when,
               Tsc tsc);

  // Frees the disk space of data before the window. Only for recordings that are not read
  // afterwards.
  void PunchHoles(const recording::RecordingInfo& info, const Part& part) const;

 private:
  std::string Path(std::string_view name) const;

  struct Mark {
    std::chrono::steady_clock::time_point when;
    Tsc tsc;
    uint64_t trace_bytes = 0;
    std::vector<uint64_t> sample_bytes;  // sizes of the samples' files, by source
  };

  std::string path_;
  std::chrono::nanoseconds length_;
  std::chrono::nanoseconds lag_;
  std::deque<Mark> marks_;
};

}  // namespace xenoscope::profile
