// An interrupt that Xen has handled: what a record of kHwIrqHandled says.
#pragma once

#include <algorithm>
#include <cstdint>

#include "base/tsc.h"
#include "trace/record.h"

namespace xenoscope::trace {

struct HandledInterrupt {
  uint32_t irq = 0;     // Xen's number of it
  uint32_t cycles = 0;  // its handler ran so long
  TscRange range;       // in that time, as far as there were TSCs then
};

// `record` is of kHwIrqHandled (TRC_HW_IRQ_HANDLED of xen/include/public/trace.h). Xen writes it
// when it has handled the interrupt, with the low halves of the TSC at both ends: their difference
// is right though they wrap.
inline HandledInterrupt DecodeHandledInterrupt(const Record& record) {
  const uint32_t cycles = record.payload.Word(2) - record.payload.Word(1);
  const Tsc begin{record.tsc.value - std::min<uint64_t>(cycles, record.tsc.value)};
  return {record.payload.Word(0), cycles, {begin, record.tsc}};
}

}  // namespace xenoscope::trace
