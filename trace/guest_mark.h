// Decodes marks: events that guests write into the trace with `xenoscope mark` or xenoscope_mark.h
// (HVMOP_xentrace, TRC_GUEST). A mark has a text of at most 64 bytes, in one to four records.
//
//   words 0, 1   the guest's TSC, low word first
//   word 2       bits 0-3 version (1), 4-7 kind, 8-12 bytes of text here, 13 more records follow,
//                14-15 number of this record, 16-31 number of the mark
//   words 3-6    text; the last record has only as many words as it needs
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "trace/record.h"

namespace xenoscope::trace {

inline constexpr uint32_t kGuestMarkEvent = 0x5ce;  // the events' number, below 4096

enum class GuestMarkKind : uint8_t { kInstant, kBegin, kEnd };

// One record of a mark.
struct GuestMark {
  uint64_t guest_tsc = 0;  // cycles of the guest's TSC
  GuestMarkKind kind = GuestMarkKind::kInstant;
  uint16_t number = 0;     // the writer's number of the mark, the same in all its records
  uint8_t part = 0;        // number of this record, from 0
  bool continues = false;  // another record follows
  std::string_view text;   // points into the record; any bytes
};

// Returns nothing if the record is no mark of this version.
[[nodiscard]] std::optional<GuestMark> DecodeGuestMark(const Record& record);

// "instant", "begin", "end".
[[nodiscard]] std::string_view ToString(GuestMarkKind kind);

}  // namespace xenoscope::trace
