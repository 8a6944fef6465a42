// Takes records out of one ring of perf events (linux/perf_event.h, struct perf_event_mmap_page).
//
// The kernel writes at data_head, which only grows; we read at data_tail and move it up. A record
// may run over the ring's end to its beginning. What does not fit together is skipped and counted:
// nothing that the ring says leads outside of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/bytes.h"
#include "sampler/perf/perf_calls.h"

namespace xenoscope::sampler {

class PerfRing {
 public:
  explicit PerfRing(PerfMapping mapping) : mapping_(mapping) {}

  // Hands every record that is there now to `take`, whole and with its header, and gives its place
  // back to the kernel.
  // Returns which part of the ring's room they used, in [0, 1].
  double Drain(const std::function<void(Bytes)>& take);

  const PerfMapping& mapping() const { return mapping_; }
  // Bytes that were no records.
  uint64_t damaged() const { return damaged_; }

 private:
  // [position, position + size) of the ring; the bytes hold until the next call.
  Bytes At(uint64_t position, size_t size);

  PerfMapping mapping_;
  uint64_t damaged_ = 0;
  std::vector<std::byte> joined_;  // a record that runs over the ring's end
};

}  // namespace xenoscope::sampler
