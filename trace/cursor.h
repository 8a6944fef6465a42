// One pCPU's records in order, from its windows; damage becomes items, and the walk goes on behind
// it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "trace/record.h"
#include "trace/windows.h"

namespace xenoscope::trace {

// Walks one pCPU. After construction and after each Advance(), item() is what comes next, until
// done(). The TSC of the items never goes back: a record whose TSC its neighbours contradict keeps
// its place, inherits the TSC before it, and is announced by a kDamaged item of 0 bytes.
class Cursor {
 public:
  // `file` and `windows` must outlive the cursor. O(1) but for a search of the first TSC.
  Cursor(Bytes file, const PcpuWindows& windows);

  bool done() const { return done_; }
  Tsc tsc() const { return item_.record.tsc; }
  const Item& item() const { return item_; }

  // O(1) amortised.
  void Advance() {
    if (!AdvanceFast()) AdvanceCarefully();
  }

 private:
  struct Header {
    uint32_t id;
    uint32_t words;
    bool has_tsc;
    uint32_t size;  // bytes
  };
  static Header Decode(uint32_t word);

  // What is common, without a call: a known record of the proper size that changes nothing here.
  // False, with nothing done, for all else.
  bool AdvanceFast();
  void AdvanceCarefully();
  void TakeRecord();
  void TakeLost(const Header& header);
  bool NextWindow();
  void SetDamage(DamageKind kind, uint64_t bytes);
  void SetRecord(const Header& header);
  void FollowCurrent();
  // Skips from pos_ to the next place in this window where a record can start.
  void Resynchronise(DamageKind kind);
  // Whether a record of a known event with its proper words and a TSC not before the last can start
  // here.
  bool Plausible(uint64_t at) const;
  bool EndsPlausibly(uint64_t at) const;
  // The first TSC at or after `at`, looking at a few records only.
  std::optional<Tsc> PeekTsc(uint64_t at) const;
  std::optional<Tsc> FirstTsc() const;
  bool TscIsWrong(Tsc tsc, const Header& header) const;

  const std::byte* file_;
  const PcpuWindows* windows_;
  size_t window_ = 0;
  uint64_t pos_ = 0;
  uint64_t end_ = 0;
  Tsc last_tsc_;
  Item item_;
  // The current vCPU is no longer known once the item at hand has been passed.
  bool forget_current_after_ = false;
  bool slow_next_ = true;        // one of the flags here is set
  bool tsc_announced_ = false;   // the damage item of the record at pos_ has been given
  bool loss_announced_ = false;  // likewise its kLossBegin
  bool ended_ = false;
  bool done_ = false;
};

namespace cursor_internal {
// A TSC that leaps further than this (about a millisecond) is checked against the next one.
inline constexpr Cycles kSuspiciousLeap = Cycles{1} << 22;
inline constexpr uint64_t kMostRecordBytes = 40;
// By event: bit n is set when a record of n extra words is a proper one that the fast way may take.
extern const std::array<uint8_t, kEventCount> kFastWords;
}  // namespace cursor_internal

inline bool Cursor::AdvanceFast() {
  if (end_ - pos_ < cursor_internal::kMostRecordBytes || slow_next_) return false;
  const std::byte* at = file_ + pos_;
  const Header header = Decode(LoadUnchecked<uint32_t>(at));
  const Event event = Classify(header.id);
  if ((cursor_internal::kFastWords[static_cast<size_t>(event)] >> header.words & 1) == 0)
    return false;
  if (header.has_tsc) {
    const Tsc tsc{LoadUnchecked<uint64_t>(at + 4)};
    // One comparison for "not before the last" and "no leap".
    if (tsc.value - last_tsc_.value >= cursor_internal::kSuspiciousLeap) return false;
    last_tsc_ = tsc;
  }
  Record& record = item_.record;
  record.tsc = last_tsc_;
  record.offset = pos_;
  record.id = header.id;
  record.event = event;
  record.has_tsc = header.has_tsc;
  record.payload = Payload(at + (header.has_tsc ? 12 : 4), header.words);
  item_.kind = ItemKind::kRecord;
  pos_ += header.size;
  return true;
}

inline Cursor::Header Cursor::Decode(uint32_t word) {
  const uint32_t words = (word >> 28) & 7;
  const bool has_tsc = (word >> 31) != 0;
  return {word & 0x0fffffff, words, has_tsc, 4 + (has_tsc ? 8U : 0U) + words * 4};
}

}  // namespace xenoscope::trace
