// Reads one sub-buffer of a Linux kernel's trace (kernel/trace/ring_buffer.c), as
// per_cpu/cpuN/trace_pipe_raw gives it. It comes from a guest, and is hostile until read.
//
// After the page's head come events. The first word of each has 5 bits of type and length, and 27
// bits with the time since the event before:
//
//   0        the data follow a word with their length    29  padding
//   1 to 28  that many words of data                     30  time extend: 27 bits and the next word
//                                                        31  absolute time stamp of 59 bits
#pragma once

#include <cstdint>

#include "base/bytes.h"
#include "guests/ftrace/formats.h"

namespace xenoscope::guests {

// An event that is not decoded yet.
struct RawEvent {
  uint64_t tsc = 0;  // of the guest's clock
  Bytes data;        // begins with the number of its format
};

class PageReader {
 public:
  // `page` outlives the reader.
  PageReader(Bytes page, const PageLayout& layout);

  // Reads the next event. False: the page has no more, or is damaged from here on. O(1) amortised.
  bool Next(RawEvent& event);

  // Whether events before this page were lost, as the guest says: the buffer was full.
  [[nodiscard]] bool lost_before() const { return lost_before_; }
  // Returns their number; 0 where the page has no room to say it.
  [[nodiscard]] uint64_t lost_events() const { return lost_events_; }
  // Returns the bytes of events that cannot be read: an event reaches beyond the page.
  [[nodiscard]] uint64_t damaged_bytes() const { return damaged_; }

 private:
  // Gives up the rest of the page.
  bool Damage();

  Bytes data_;  // events not read yet
  uint64_t tsc_ = 0;
  uint64_t lost_events_ = 0;
  uint64_t damaged_ = 0;
  bool lost_before_ = false;
};

}  // namespace xenoscope::guests
