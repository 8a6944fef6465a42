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

  // Moves on. Items that are common records no later than `limit` are written to `out`, at most
  // `room` of them; returns how many. Behind them item() is the next, of any kind and time.
  // O(1) an item.
  size_t AdvanceRun(Item* out, size_t room, Tsc limit);

 private:
  struct Header {
    uint32_t id;
    uint32_t words;
    bool has_tsc;
    uint32_t size;  // bytes
  };
  static Header Decode(uint32_t word);

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

}  // namespace xenoscope::trace
