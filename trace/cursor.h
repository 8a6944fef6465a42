// One pCPU's records in order, from its windows; damage becomes items, and the walk goes on behind
// it.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/state_snapshot.h"
#include "trace/record.h"
#include "trace/volume.h"
#include "trace/windows.h"

namespace xenoscope::trace {

// What the records of each event are for: something of the taker's, which it gets with each record
// so that it need not look it up. Records whose event has null are not wanted.
template <typename Target>
using EventTargets = std::array<const Target*, kEventCount>;

// The target of takers for which records of all wanted events are alike.
struct AnyTarget {};
inline constexpr AnyTarget kAnyTarget;
inline constexpr EventTargets<AnyTarget> kAllEvents = [] {
  EventTargets<AnyTarget> all{};
  all.fill(&kAnyTarget);
  return all;
}();

// Takes what a cursor gives. Slot returns the record into which the next wanted record of a known
// event is put; its pCPU is set already. CommitRecord takes that record, with the vCPU that ran and
// the event's target; Commit takes all other items. Both return whether there is room for more. The
// vCPU is right only if kReportsRunningVcpu.
template <typename S, typename Target>
concept RecordSink = requires(S& sink, PcpuId pcpu, const std::optional<VcpuRef>& ran,
                              const Target& target, const Item& item) {
  { S::kReportsRunningVcpu } -> std::convertible_to<bool>;
  { sink.Slot(pcpu) } -> std::same_as<Record&>;
  { sink.CommitRecord(ran, target) } -> std::same_as<bool>;
  { sink.Commit(item) } -> std::same_as<bool>;
};

// What the cursor knows of common records by their first word, of which a trace has some dozens: a
// hash table that forgets everything when it is half full.
class HeadCache {
 public:
  struct alignas(32) Entry {
    uint32_t word = 0;
    uint8_t size = 0;                 // bytes of the record; 0: the entry is free
    bool names_running_vcpu = false;  // the record says which vCPU runs
    RecordHead head;
    uint64_t taken = 0;  // records since they were last counted elsewhere
  };
  static constexpr size_t kSize = 512;

  HeadCache() { Clear(); }
  // Returns the place where the entry of the word most probably is.
  Entry& Guess(uint32_t word) { return entries_[Place(word)]; }
  // Returns the entry of the word, or the free one where it belongs.
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
  [[nodiscard]] std::span<const Entry> All() const { return entries_; }

 private:
  [[nodiscard]] static size_t Place(uint32_t word) { return MultiplyHash(word) >> 23; }
  std::array<Entry, kSize> entries_{};
};

// Walks through one pCPU's items. Their TSC never goes back: a record whose TSC its neighbours
// contradict keeps its place, inherits the TSC before it, and is announced by a kDamaged item of 0
// bytes.
class Cursor {
 public:
  // Walks from the window with the index `first_window` on, as if nothing were known of what comes
  // before. `file` and `windows` outlive the cursor. O(1), beside a search for the first TSC.
  Cursor(Bytes file, const PcpuWindows& windows, size_t first_window = 0);

  [[nodiscard]] PcpuId pcpu() const { return pcpu_; }
  // Whether there are no more items.
  [[nodiscard]] bool done() const { return done_; }
  // The time of the next item.
  [[nodiscard]] Tsc tsc() const { return next_tsc_; }

  // Gives the items up to the time `limit` (not below tsc()) to the sink, for as long as it takes
  // them. Records of events that are not `wanted` are passed over, even up to the time `through`
  // (not below `limit`). If kCount, all that is given is counted, and all that is passed over but
  // rare kinds of items. Gives nothing only if the next item is later than tsc() said. O(1) and
  // some dozens of instructions for an item, fewer for one that is passed over.
  //
  // `wanted` has the events that say which vCPU runs (kRunstateChange, kContinueRunning).
  template <bool kCount, typename Target, RecordSink<Target> Sink>
  void Take(Sink& sink, Tsc limit, Tsc through, const EventTargets<Target>& wanted);
  // Adds the records that have been taken to the volume.
  void AddTaken(PcpuVolume& volume) const;
  // Adds the cursor's place, and what it knows there, without the vCPU that runs.
  void SaveState(StateSnapshot& out) const;

 private:
  // Whether Xen can have such a vCPU.
  [[nodiscard]] static bool CanExist(VcpuRef vcpu);
  // Returns the TSC at `at`, corrected to the host's clock.
  [[nodiscard]] Tsc LoadTsc(const std::byte* at) const {
    return {LoadUnchecked<uint64_t>(at) + tsc_offset_};
  }

  // A TSC that leaps further than this (about a millisecond) is checked against others.
  static constexpr Cycles kSuspiciousTscJump = Cycles{1} << 22;
  static constexpr uint64_t kMaxRecordBytes = 40;
  // The distance of the bytes that are prefetched: beyond the page in which the processor itself
  // looks ahead.
  static constexpr size_t kPrefetchDistance = 1024;

  // Takes the common records, with everything in registers; stops before what is not common.
  // Returns whether the sink takes more.
  template <bool kCount, typename Target, RecordSink<Target> Sink>
  bool TakeCommon(Sink& sink, Tsc limit, Tsc through, const EventTargets<Target>& wanted);
  // Returns the cache's entry, made if there is none; null for records that are not common.
  HeadCache::Entry* Look(uint32_t word);
  void ForgetHeads();
  void CountPending();
  // Decodes the item at pos_, of whatever kind, into pending_.
  void Prepare();
  void PrepareRecord();
  void PrepareLoss(FirstWord header);
  bool NextWindow();
  void SetDamage(DamageKind kind, uint64_t bytes);
  void SetRecord(FirstWord header);
  // Notes which vCPU runs after the record; returns the one that ran before it.
  std::optional<VcpuRef> UpdateCurrent(const Record& record);
  // Skips from pos_ to the next place in this window where a record can start, which becomes
  // damage.
  void Resynchronise(DamageKind kind);
  // Whether a record of a known event with its proper words and a TSC not before the last can start
  // here.
  [[nodiscard]] bool Plausible(uint64_t at) const;
  [[nodiscard]] bool EndsPlausibly(uint64_t at) const;
  [[nodiscard]] std::optional<Tsc> FirstTsc() const;
  [[nodiscard]] bool TscIsWrong(Tsc tsc, FirstWord header) const;
  [[nodiscard]] bool TscJumpIsConfirmed(Tsc tsc, uint64_t at) const;

  const std::byte* file_;
  const PcpuWindows* windows_;
  PcpuId pcpu_;
  uint64_t tsc_offset_;  // modulo 2^64
  size_t window_;
  uint64_t pos_ = 0;
  uint64_t end_ = 0;
  Tsc last_tsc_;
  Tsc next_tsc_;
  std::optional<VcpuRef> current_;  // the vCPU that runs after the last item
  std::unique_ptr<HeadCache> heads_ = std::make_unique<HeadCache>();
  size_t heads_known_ = 0;                                               // entries of heads_
  std::unique_ptr<PcpuVolume> volume_ = std::make_unique<PcpuVolume>();  // without what heads_ has
  Item pending_;
  bool has_pending_;                  // pending_ is the next item
  bool tsc_damage_reported_ = false;  // the damage item of the record at pos_ has been given
  bool loss_begin_reported_ = false;  // the kLossBegin of the record at pos_ has been given
  bool ended_ = false;                // kPcpuEnd has been prepared
  bool done_ = false;
};

template <bool kCount, typename Target, RecordSink<Target> Sink>
void Cursor::Take(Sink& sink, Tsc limit, Tsc through, const EventTargets<Target>& wanted) {
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
    if (!TakeCommon<kCount, Target>(sink, limit, through, wanted)) return;
  } while (has_pending_ && next_tsc_ <= limit);
}

template <bool kCount, typename Target, RecordSink<Target> Sink>
bool Cursor::TakeCommon(Sink& sink, Tsc limit, Tsc through, const EventTargets<Target>& wanted) {
  const std::byte* const file = file_;
  const std::byte* at = file + pos_;
  // The last place from which a record of any size can be read, and a word behind it.
  const std::byte* const last_start = file + end_ - std::min(end_, kMaxRecordBytes + 4);
  const uint64_t tsc_offset = tsc_offset_;
  HeadCache& heads = *heads_;
  uint64_t last = last_tsc_.value;
  // The time of the next item, if that is known.
  std::optional<Tsc> next;
  bool common = false;  // the record at `at` is common, as far as was looked
  bool more = true;
  HeadCache::Entry* known = &heads.Guess(at <= last_start ? LoadUnchecked<uint32_t>(at) : 0);
  while (at <= last_start) {
    const auto word = LoadUnchecked<uint32_t>(at);
    if (known->word != word) [[unlikely]] {
      known = Look(word);
      if (known == nullptr) break;
    }
    const Target* const target = wanted[static_cast<size_t>(known->head.event)];
    const uint32_t shape = word >> 28;
    const std::byte* const payload = at + 4 + (shape & 8);
    const std::byte* const behind = payload + size_t{shape & 7} * 4;
    __builtin_prefetch(behind + kPrefetchDistance);
    // The next record's entry is found before this record is dealt with: its address cannot be
    // predicted, so that the processor would wait for it.
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
      const bool names_vcpu = Sink::kReportsRunningVcpu && known->names_running_vcpu;
      more = sink.CommitRecord(names_vcpu ? UpdateCurrent(record) : current_, *target);
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
