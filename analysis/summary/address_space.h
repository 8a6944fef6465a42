// The address space that an HVM vCPU is in, from those writes of its cr3 that were traced. Under
// nested paging guests write cr3 without an exit, and the address space is not known.
#pragma once

#include <optional>

#include "analysis/analysis.h"
#include "trace/events.h"

namespace xenoscope::analysis {

inline constexpr uint32_t kCr3 = 3;

// Returns the page-frame number that the record moves into cr3; nothing for other control
// registers.
inline std::optional<uint64_t> WrittenCr3(const trace::Record& record) {
  if (record.event != trace::Event::kHvmCrWrite || record.payload.Word(0) != kCr3) {
    return std::nullopt;
  }
  const uint64_t value = trace::Is64(record.id) ? record.payload.Word64(1) : record.payload.Word(1);
  // Bits 52 to 63 are reserved or say how to switch; bits 0 to 11 are the PCID and flags.
  return (value & 0x000fffffffffffff) >> 12;
}

}  // namespace xenoscope::analysis
