// A reader of one ring of perf events (linux/perf_event.h, struct perf_event_mmap_page).
//
// The kernel writes at data_head, which only grows; the reader reads at data_tail and advances it.
// A record may wrap around the ring's end. Inconsistent content is skipped and counted: no value in
// the ring leads outside of it.
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
  // back to the kernel. Returns the part of the ring that the records used, in [0, 1].
  double Drain(const std::function<void(Bytes)>& take);

  [[nodiscard]] const PerfMapping& mapping() const { return mapping_; }
  // Returns the number of bytes that are not records.
  [[nodiscard]] uint64_t damaged() const { return damaged_; }

 private:
  // Returns the bytes at [position, position + size) of the ring, valid until the next call.
  Bytes At(uint64_t position, size_t size);

  PerfMapping mapping_;
  uint64_t damaged_ = 0;
  std::vector<std::byte> joined_;  // a record that wraps around the ring's end
};

}  // namespace xenoscope::sampler
