// One pCPU's records in order, from its windows; damage becomes items, and the walk goes on behind
// it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/bytes.h"
#include "trace/record.h"
#include "trace/windows.h"

namespace xenoscope::trace {

// Walks one pCPU. The TSC of the items never goes back: a record whose TSC its neighbours
// contradict keeps its place, inherits the TSC before it, and is announced by a kDamaged item of 0
// bytes.
class Cursor {
 public:
  // `file` and `windows` must outlive the cursor. O(1) but for a search of the first TSC.
  Cursor(Bytes file, const PcpuWindows& windows);

  PcpuId pcpu() const { return pcpu_; }
  // There are no more items.
  bool done() const { return done_; }
  // The time of the next item.
  Tsc tsc() const { return next_tsc_; }

  // Writes the items up to `limit` to `out`, the first whatever its time, at most `room` (at least
  // 1) of them; returns how many. O(1) an item.
  size_t Take(Item* out, size_t room, Tsc limit);

 private:
  struct Header {
    uint32_t id;
    uint32_t words;
    bool has_tsc;
    uint32_t size;  // bytes
  };
  static Header Decode(uint32_t word);
  // The TSC that stands at `at`, as the host's clock has it.
  Tsc LoadTsc(const std::byte* at) const { return {LoadUnchecked<uint64_t>(at) + tsc_offset_}; }

  // The common records up to `limit`, with everything in registers; stops before what is not
  // common.
  size_t TakeCommon(Item* out, size_t room, Tsc limit);
  // Decodes the item at pos_, of whatever kind, into pending_.
  void Prepare();
  void PrepareRecord();
  void PrepareLoss(const Header& header);
  bool NextWindow();
  void SetDamage(DamageKind kind, uint64_t bytes);
  void SetRecord(const Header& header);
  // What the record says of who runs: before it, and after it.
  void FollowCurrent(Item& item);
  // Skips from pos_ to the next place in this window where a record can start.
  void Resynchronise(DamageKind kind);
  // Whether a record of a known event with its proper words and a TSC not before the last can start
  // here.
  bool Plausible(uint64_t at) const;
  bool EndsPlausibly(uint64_t at) const;
  std::optional<Tsc> FirstTsc() const;
  bool TscIsWrong(Tsc tsc, const Header& header) const;
  bool LeapIsConfirmed(Tsc tsc, uint64_t at) const;

  const std::byte* file_;
  const PcpuWindows* windows_;
  PcpuId pcpu_;
  uint64_t tsc_offset_;  // modulo 2^64
  size_t window_ = 0;
  uint64_t pos_ = 0;
  uint64_t end_ = 0;
  Tsc last_tsc_;
  Tsc next_tsc_;
  std::optional<VcpuRef> current_;  // who runs, after the last item
  Item pending_;
  bool has_pending_ = true;      // pending_ is the next item
  bool tsc_announced_ = false;   // the damage item of the record at pos_ has been given
  bool loss_announced_ = false;  // likewise its kLossBegin
  bool ended_ = false;           // kPcpuEnd has been prepared
  bool done_ = false;
};

}  // namespace xenoscope::trace
