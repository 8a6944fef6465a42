// One trace record as Xen wrote it, and the items of the ordered stream around it.
//
// Format: xen/include/public/trace.h (4.8 to 4.22), little-endian 32-bit words:
//   word 0: bits 0..27 event, bits 28..30 number of extra words, bit 31 a TSC follows
//   [tsc low, tsc high]  0 to 7 extra words
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "trace/events.h"

namespace xenoscope::trace {

// The extra words of a record. Words that the record does not have read as 0, so that no reader can
// leave the record; the stream has checked their number against the event table before
// (Item::kRecord always has at least Info(event).min_words).
class Payload {
 public:
  Payload() = default;
  Payload(const std::byte* from, uint32_t count) : from_(from), count_(count) {}

  [[nodiscard]] uint32_t count() const { return count_; }
  [[nodiscard]] uint32_t Word(uint32_t i) const {
    return i < count_ ? LoadUnchecked<uint32_t>(from_ + size_t{i} * 4) : 0;
  }
  // Returns words i (low) and i + 1 (high).
  [[nodiscard]] uint64_t Word64(uint32_t i) const {
    return Word(i) | (uint64_t{Word(i + 1)} << 32);
  }
  [[nodiscard]] Bytes bytes() const { return {from_, size_t{count_} * 4}; }

 private:
  const std::byte* from_ = nullptr;
  uint32_t count_ = 0;
};

// The first word of a record.
struct FirstWord {
  uint32_t value = 0;

  [[nodiscard]] static constexpr FirstWord Pack(uint32_t id, uint32_t words, bool has_tsc) {
    return {id | words << 28 | uint32_t{has_tsc} << 31};
  }
  // The 28 bits of the event number.
  [[nodiscard]] constexpr uint32_t id() const { return value & 0x0fffffff; }
  // The number of extra words, 0 to 7.
  [[nodiscard]] constexpr uint32_t words() const { return value >> 28 & 7; }
  [[nodiscard]] constexpr bool has_tsc() const { return value >> 31 != 0; }
  // The bytes before the extra words, and those of the whole record.
  [[nodiscard]] constexpr uint32_t PayloadOffset() const { return has_tsc() ? 12 : 4; }
  [[nodiscard]] constexpr uint32_t SizeBytes() const { return PayloadOffset() + words() * 4; }
};

// What the first word of a record says.
struct RecordHead {
  uint32_t id = 0;  // the 28 bits of the event number
  Event event = Event::kUnknown;
  bool has_tsc = false;
  uint8_t words = 0;  // the number of words of the payload
};
static_assert(sizeof(RecordHead) == 8);  // copied for every record

struct Record : RecordHead {
  Tsc tsc;              // the record's own, or that of the record before it on this pCPU
  uint64_t offset = 0;  // byte of the record's first word in the file
  PcpuId pcpu;
  Payload payload;

  [[nodiscard]] uint32_t SizeBytes() const { return 4 + (has_tsc ? 8 : 0) + payload.count() * 4; }
};

// Reads a record of this event again from the file, all but its pCPU. The stream gave its offset,
// event and time before.
inline void ReadAgain(Bytes file, uint64_t offset, Event event, Tsc tsc, Record& record) {
  const std::byte* const at = file.data() + offset;
  const FirstWord word{LoadUnchecked<uint32_t>(at)};
  record.id = word.id();
  record.event = event;
  record.has_tsc = word.has_tsc();
  record.words = static_cast<uint8_t>(word.words());
  record.tsc = tsc;
  record.offset = offset;
  record.payload = Payload(at + word.PayloadOffset(), word.words());
}

// The kinds of items of the ordered stream. Every byte of the file is in exactly one kRecord,
// kUnknownEvent, kMalformed, kWrap, kLost or kDamaged, or in a window header.
enum class ItemKind : uint8_t {
  kRecord,        // a record of a known event, with the words that this event has
  kUnknownEvent,  // a well-formed record whose event is not in the table
  kMalformed,     // a known event with a number of words, or of a vCPU, that no Xen has
  kWrap,          // padding at the end of the hypervisor's ring (TRC_TRACE_WRAP_BUFFER)
  kLossBegin,     // records of this pCPU were lost from here (an instant before the kLost record)
  kLost,          // TRC_LOST_RECORDS: the pCPU's trace goes on here; Item::lost says how many
  kDamaged,       // bytes that cannot be a record; Item::damage says which and why
  kPcpuBegin,     // the first record of this pCPU follows
  kPcpuEnd,       // the pCPU's trace ends here
};

enum class DamageKind : uint8_t {
  kNone,
  kTruncated,      // the file ends inside a window or its header
  kNoWindow,       // no window header where one must be
  kStraddle,       // a record would reach past its window
  kNotARecord,     // a header whose class does not exist
  kTscOutOfOrder,  // a TSC that its neighbours contradict
};

struct Damage {
  DamageKind kind = DamageKind::kNone;
  uint64_t offset = 0;  // the first byte
  uint64_t bytes = 0;   // the number of bytes passed over (for kTruncated: those present)
};

[[nodiscard]] const char* ToString(DamageKind kind);

struct alignas(64) Item {
  // The parts that every item has, in one cache line. Of items that are no record (kPcpuBegin,
  // kPcpuEnd, kDamaged), `record` holds the time, the pCPU and the offset only.
  Record record;
  // The vCPU that ran on the pCPU when the record was written, where the trace says it.
  std::optional<VcpuRef> current;
  ItemKind kind = ItemKind::kRecord;

  // kLossBegin and kLost: the number of records and the time of the first of them.
  uint32_t lost = 0;
  Tsc first_lost;
  // kDamaged.
  Damage damage;
};
static_assert(sizeof(Item) == 128);

}  // namespace xenoscope::trace
