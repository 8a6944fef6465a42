#include "symbolizer/unwind/orc_section.h"

#include <algorithm>
#include <array>
#include <utility>

namespace xenoscope::symbolizer {
namespace {

struct RawEntry {
  int16_t sp_offset = 0;
  int16_t bp_offset = 0;
  uint16_t bits = 0;
};
static_assert(sizeof(RawEntry) == 6);

constexpr uint16_t kTwoBits = 0x3;
constexpr uint16_t kThreeBits = 0x7;
constexpr int kTypeShift = 8;
constexpr uint16_t kBit10 = 1U << 10;
constexpr uint16_t kBit11 = 1U << 11;

RawEntry EntryAt(Bytes entries, size_t i) {
  return LoadUnchecked<RawEntry>(entries.data() + i * sizeof(RawEntry));
}

OrcType TypeOf(OrcLayout layout, uint16_t bits) {
  const int type = bits >> kTypeShift;
  if (layout == OrcLayout::kFiveTypes) {
    constexpr auto kLast = static_cast<int>(OrcType::kPartialRegisters);
    return static_cast<OrcType>((type & kThreeBits) > kLast ? 0 : type & kThreeBits);
  }
  const bool no_base = (bits & 0xf) == static_cast<uint16_t>(OrcRegister::kUndefined);
  const uint16_t end = layout == OrcLayout::kEnd ? kBit10 : kBit11;
  if (no_base) return (bits & end) != 0 ? OrcType::kEndOfStack : OrcType::kUndefined;
  constexpr std::array kTypes = {OrcType::kCall, OrcType::kRegisters, OrcType::kPartialRegisters,
                                 OrcType::kUndefined};  // a compiler's mark, not in kernels
  return kTypes.at(type & kTwoBits);
}

OrcEntry Decode(OrcLayout layout, const RawEntry& raw, Address begin) {
  constexpr int kBpShift = 4;
  return {.begin = begin,
          .type = TypeOf(layout, raw.bits),
          .sp_register = static_cast<OrcRegister>(raw.bits & 0xf),
          .sp_offset = raw.sp_offset,
          .bp_register = static_cast<OrcRegister>((raw.bits >> kBpShift) & 0xf),
          .bp_offset = raw.bp_offset};
}

}  // namespace

// Nearly all entries are of calls, whose type is 0, or 2 since there are five types. Each kernel
// has code that nothing called, which bit 11 marks in the second layout; the first does not use it.
OrcLayout OrcLayoutOf(Bytes entries) {
  std::array<size_t, kThreeBits + 1> of_type{};
  bool has_bit_11 = false;
  for (size_t i = 0; i < entries.size() / sizeof(RawEntry); ++i) {
    const uint16_t bits = EntryAt(entries, i).bits;
    ++of_type.at((bits >> kTypeShift) & kThreeBits);
    has_bit_11 = has_bit_11 || (bits & kBit11) != 0;
  }
  constexpr size_t kCallOfFive = 2;
  if (of_type.at(kCallOfFive) > of_type.at(0)) return OrcLayout::kFiveTypes;
  return has_bit_11 ? OrcLayout::kSignalAndEnd : OrcLayout::kEnd;
}

std::optional<std::vector<OrcEntry>> ReadOrc(const OrcSections& sections) {
  const size_t count = sections.addresses.size() / sizeof(int32_t);
  if (sections.addresses.size() % sizeof(int32_t) != 0 ||
      sections.entries.size() != count * sizeof(RawEntry)) {
    return std::nullopt;
  }
  std::vector<Address> begins;
  begins.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    const size_t at = i * sizeof(int32_t);
    const auto distance = LoadUnchecked<int32_t>(sections.addresses.data() + at);
    begins.push_back(sections.addresses_at + at + static_cast<uint64_t>(int64_t{distance}));
  }
  return ReadOrc(begins, sections.entries, OrcLayoutOf(sections.entries));
}

std::optional<std::vector<OrcEntry>> ReadOrc(std::span<const Address> begins, Bytes entries,
                                             OrcLayout layout) {
  if (begins.empty() || entries.size() != begins.size() * sizeof(RawEntry)) return std::nullopt;
  std::vector<OrcEntry> read;
  read.reserve(begins.size());
  for (size_t i = 0; i < begins.size(); ++i) {
    read.push_back(Decode(layout, EntryAt(entries, i), begins[i]));
  }
  // Of two entries at one address, the first ends what is before, and is undefined: the other one
  // counts. Before 5.6 the tables are sorted only when the kernel boots.
  std::ranges::stable_sort(read, [](const OrcEntry& a, const OrcEntry& b) {
    const auto key = [](const OrcEntry& of) {
      return std::pair(of.begin, of.type != OrcType::kUndefined);
    };
    return key(a) < key(b);
  });
  size_t kept = 0;
  for (const OrcEntry& entry : read) {
    if (kept > 0 && read[kept - 1].begin == entry.begin) --kept;
    read[kept++] = entry;
  }
  read.resize(kept);
  return read;
}

}  // namespace xenoscope::symbolizer
