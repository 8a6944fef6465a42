#include "trace/guest_mark.h"

namespace xenoscope::trace {
namespace {

constexpr uint32_t kVersion = 1;
constexpr uint32_t kHeaderBytes = 12;

}  // namespace

std::optional<GuestMark> DecodeGuestMark(const Record& record) {
  const Payload& payload = record.payload;
  if (record.event != Event::kGuest || (record.id & 0xfff) != kGuestMarkEvent) return std::nullopt;
  if (payload.count() * 4 < kHeaderBytes) return std::nullopt;
  const uint32_t word = payload.Word(2);
  const uint32_t kind = (word >> 4) & 0xf;
  const uint32_t bytes = (word >> 8) & 0x1f;
  const bool fits = kHeaderBytes + bytes <= payload.count() * 4;
  if ((word & 0xf) != kVersion || kind > static_cast<uint32_t>(GuestMarkKind::kEnd) || !fits) {
    return std::nullopt;
  }
  const Bytes text = payload.bytes().subspan(kHeaderBytes, bytes);
  return GuestMark{.guest_tsc = payload.Word64(0),
                   .kind = static_cast<GuestMarkKind>(kind),
                   .number = static_cast<uint16_t>(word >> 16),
                   .part = static_cast<uint8_t>((word >> 14) & 3),
                   .continues = ((word >> 13) & 1) != 0,
                   .text = {reinterpret_cast<const char*>(text.data()), text.size()}};
}

std::string_view ToString(GuestMarkKind kind) {
  switch (kind) {
    case GuestMarkKind::kInstant:
      return "instant";
    case GuestMarkKind::kBegin:
      return "begin";
    case GuestMarkKind::kEnd:
      return "end";
  }
  return "?";
}

}  // namespace xenoscope::trace
