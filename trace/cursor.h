// One pCPU's records in order, from its windows; damage becomes items, and the walk goes on behind
// it.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/state_snapshot.h"
#include "trace/record.h"
#include "trace/volume.h"
#include "trace/windows.h"

namespace xenoscope::trace {

// Of which events the records are wanted, and what they are for: null are not wanted; the others
// are handed, with each record, to who takes it, and save him a search by event.
using EventTargets = std::array<const void*, kEventCount>;
inline constexpr char kAnyTarget = 0;
inline constexpr EventTargets kAllEvents = [] {
  EventTargets all{};
  all.fill(&kAnyTarget);
  return all;
}();

// What the cursor knows of common records by their first word, of which a trace has some dozens: a
// hash table that forgets everything when it is half full.
class HeadCache {
 public:
  struct alignas(32) Entry {
    uint32_t word = 0;
    uint8_t size = 0;                 // bytes of the record; 0: free
    bool names_running_vcpu = false;  // and is wanted
    RecordHead head;
    const void* target = nullptr;  // of EventTargets; null: passed over
    uint64_t taken = 0;            // how many records since they were last counted elsewhere
  };
  static constexpr size_t kSize = 512;

  HeadCache() { Clear(); }
  // Where the entry of the word most probably is.
  Entry& Guess(uint32_t word) { return entries_[Place(word)]; }
  // The entry of the word, or the free one where it belongs.
  Entry& Find(uint32_t word) {
    size_t at = Place(word);
    while (entries_[at].size != 0 && entries_[at].word != word) at = (at + 1) % kSize;
    return entries_[at];
  }
  void Clear() {
    entries_.fill({});
    // A free entry must not look like that of a word whose place it is.
    entries_[Place(0)].word = 1;
  }
  std::span<const Entry> All() const { return entries_; }

 private:
  static size_t Place(uint32_t word) { return (word * 0x9e3779b1U) >> 23; }
  std::array<Entry, kSize> entries_{};
};

// Walks one pCPU. The TSC of the items never goes back: a record whose TSC its neighbours
// contradict keeps its place, inherits the TSC before it, and is announced by a kDamaged item of 0
// bytes.
class Cursor {
 public:
  // Walks from the window with that index on, as if nothing were known of what comes before.
  // `file` and `windows` must outlive the cursor. O(1) but for a search of the first TSC.
  Cursor(Bytes file, const PcpuWindows& windows, size_t first_window = 0);

  PcpuId pcpu() const { return pcpu_; }
  // There are no more items.
  bool done() const { return done_; }
  // The time of the next item.
  Tsc tsc() const { return next_tsc_; }

  // Gives the items up to the time `limit` (not below tsc()) to the sink, for as long as it takes
  // them. Records of events that are not `wanted` are passed over, and that not only up to `limit`
  // but up to `through` (not below `limit`). What is given and, but for rare kinds of items, what
  // is passed over is counted, if kCount. Nothing is given only if tsc() was earlier than the next
  // item is. O(1) and some dozens of instructions an item, less for one that is passed over.
  //
  // A sink has Record& Slot(pcpu), where the next record of a known event is made, but for its
  // pCPU, and bool CommitRecord(who ran, target), which takes it and tells whether there is room
  // for more; bool Commit(const Item&) does for all others. Who ran is right only if
  // Sink::kReportsRunningVcpu. `wanted` must have the events that say who runs (kRunstateChange,
  // kContinueRunning), and stay as it is until another set is given.
  template <bool kCount, typename Sink>
  void Take(Sink& sink, Tsc limit, Tsc through, const EventTargets& wanted);
  // Adds what has been taken.
  void AddTaken(PcpuVolume& volume) const;
  // Where it stands, and what it knows there, but for who runs.
  void SaveState(StateSnapshot& out) const;

 private:
  struct Header {
    uint32_t id;
    uint32_t words;
    bool has_tsc;
    uint32_t size;  // bytes
  };
  static Header Decode(uint32_t word);
  // Whether Xen can have such a vCPU.
  static bool CanExist(VcpuRef vcpu);
  // The TSC that stands at `at`, as the host's clock has it.
  Tsc LoadTsc(const std::byte* at) const { return {LoadUnchecked<uint64_t>(at) + tsc_offset_}; }

  // A TSC that leaps further than this (about a millisecond) is checked against others.
  static constexpr Cycles kSuspiciousTscJump = Cycles{1} << 22;
  static constexpr uint64_t kMaxRecordBytes = 40;
  // Further than the processor itself looks ahead, which ends with the page.
  static constexpr size_t kPrefetchDistance = 1024;

  // The common records, with everything in registers; stops before what is not common. Returns
  // whether the sink takes more.
  template <bool kCount, typename Sink>
  bool TakeCommon(Sink& sink, Tsc limit, Tsc through);
  // The cache's entry, made if there is none; null for records that are not common.
  HeadCache::Entry* Look(uint32_t word);
  void ForgetHeads(const EventTargets* wanted);
  void CountPending();
  // Decodes the item at pos_, of whatever kind, into pending_.
  void Prepare();
  void PrepareRecord();
  void PrepareLoss(const Header& header);
  bool NextWindow();
  void SetDamage(DamageKind kind, uint64_t bytes);
  void SetRecord(const Header& header);
  // Takes note of what the record says of who runs after it; returns who ran before it.
  std::optional<VcpuRef> UpdateCurrent(const Record& record);
  // Skips from pos_ to the next place in this window where a record can start.
  void Resynchronise(DamageKind kind);
  // Whether a record of a known event with its proper words and a TSC not before the last can start
  // here.
  bool Plausible(uint64_t at) const;
  bool EndsPlausibly(uint64_t at) const;
  std::optional<Tsc> FirstTsc() const;
  bool TscIsWrong(Tsc tsc, const Header& header) const;
  bool TscJumpIsConfirmed(Tsc tsc, uint64_t at) const;

  const std::byte* file_;
  const PcpuWindows* windows_;
  PcpuId pcpu_;
  uint64_t tsc_offset_;  // modulo 2^64
  size_t window_;
  uint64_t pos_ = 0;
  uint64_t end_ = 0;
  Tsc last_tsc_;
  Tsc next_tsc_;
  std::optional<VcpuRef> current_;  // who runs, after the last item
  std::unique_ptr<HeadCache> heads_ = std::make_unique<HeadCache>();
  size_t heads_known_ = 0;
  const EventTargets* wanted_ = nullptr;                                 // of the entries of heads_
  std::unique_ptr<PcpuVolume> volume_ = std::make_unique<PcpuVolume>();  // but for what heads_ has
  Item pending_;
  bool has_pending_;                  // pending_ is the next item
  bool tsc_damage_reported_ = false;  // the damage item of the record at pos_ has been given
  bool loss_begin_reported_ = false;  // likewise its kLossBegin
  bool ended_ = false;                // kPcpuEnd has been prepared
  bool done_ = false;
};

template <bool kCount, typename Sink>
void Cursor::Take(Sink& sink, Tsc limit, Tsc through, const EventTargets& wanted) {
  if (wanted_ != &wanted) ForgetHeads(&wanted);
  do {
    if (has_pending_) {
      has_pending_ = false;
      if (kCount) CountPending();
      const bool more = sink.Commit(pending_);
      done_ = ended_;
      if (done_) return;
      if (!more) {
        next_tsc_ = last_tsc_;
        return;
      }
    }
    if (!TakeCommon<kCount>(sink, limit, through)) return;
  } while (has_pending_ && next_tsc_ <= limit);
}

template <bool kCount, typename Sink>
bool Cursor::TakeCommon(Sink& sink, Tsc limit, Tsc through) {
  const std::byte* const file = file_;
  const std::byte* at = file + pos_;
  // A record of any size can be read from here, and a word behind it, but not further on.
  const std::byte* const last_start = file + end_ - std::min(end_, kMaxRecordBytes + 4);
  const uint64_t tsc_offset = tsc_offset_;
  HeadCache& heads = *heads_;
  uint64_t last = last_tsc_.value;
  // The next item's; what may be of any kind is at least not before the last.
  std::optional<Tsc> next;
  bool common = false;  // what stands at `at` is, as far as was looked
  bool more = true;
  HeadCache::Entry* known = &heads.Guess(at <= last_start ? LoadUnchecked<uint32_t>(at) : 0);
  while (at <= last_start) {
    const auto word = LoadUnchecked<uint32_t>(at);
    if (known->word != word) [[unlikely]] {
      known = Look(word);
      if (known == nullptr) break;
    }
    const void* const target = known->target;
    const uint32_t shape = word >> 28;
    const std::byte* const payload = at + 4 + (shape & 8);
    const std::byte* const behind = payload + size_t{shape & 7} * 4;
    __builtin_prefetch(behind + kPrefetchDistance);
    // Where the next record's entry is is found before this one is dealt with: nobody can foretell
    // it, so the processor had better know it when it comes there.
    HeadCache::Entry* const next_known = &heads.Guess(LoadUnchecked<uint32_t>(behind));
    // The time is its own or the last, chosen by a mask, for the same reason. One comparison for
    // "not before the last" and "no leap".
    const uint64_t has_tsc = uint64_t{0} - (shape >> 3);
    const uint64_t jump = (LoadUnchecked<uint64_t>(at + 4) + tsc_offset - last) & has_tsc;
    if (jump >= kSuspiciousTscJump) break;
    const uint64_t tsc = last + jump;
    if (tsc > (target == nullptr ? through : limit).value) {
      next = Tsc{tsc};
      common = true;
      break;
    }
    if (known->names_running_vcpu && !CanExist(UnpackVcpu(LoadUnchecked<uint32_t>(payload))))
        [[unlikely]] {
      break;
    }
    last = tsc;
    if (kCount) ++known->taken;
    if (target != nullptr) {
      Record& record = sink.Slot(pcpu_);
      static_cast<RecordHead&>(record) = known->head;
      record.tsc = Tsc{tsc};
      record.offset = static_cast<uint64_t>(at - file);
      record.payload = Payload(payload, known->head.words);
      const bool tells = Sink::kReportsRunningVcpu && known->names_running_vcpu;
      more = sink.CommitRecord(tells ? UpdateCurrent(record) : current_, target);
    }
    at = behind;
    known = next_known;
    if (!more) [[unlikely]] {
      common = true;
      break;
    }
  }
  pos_ = static_cast<uint64_t>(at - file);
  last_tsc_ = Tsc{last};
  if (!common) {
    Prepare();
  } else {
    next_tsc_ = next.value_or(last_tsc_);
  }
  return more;
}

}  // namespace xenoscope::trace
