// One pCPU's records in order, from its windows; damage becomes items, and the walk goes on behind
// it.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <vector>

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

// The order in which a taker gets records, the strictest first.
enum class RecordOrder : uint8_t {
  kTime,  // all in the order of time
  // Those that cross (trace::Crosses), and all other items, in the order of time. The records of a
  // pCPU in the order of its trace, so that those between two that cross come in one run, which
  // costs far less on many pCPUs.
  kCrossing,
  // In kCrossing, but one group of pCPUs after the other, where no record of a group concerns
  // another group (OrderedStream::ForEachGroup). What a cursor gives is the same as in kCrossing.
  kGroups,
};

// The target of takers for which records of all wanted events are alike.
struct AnyTarget {};
inline constexpr AnyTarget kAnyTarget;
inline constexpr EventTargets<AnyTarget> kAllEvents = [] {
  EventTargets<AnyTarget> all{};
  all.fill(&kAnyTarget);
  return all;
}();
// Returns targets for these events alone.
constexpr EventTargets<AnyTarget> TargetsOf(std::initializer_list<Event> wanted) {
  EventTargets<AnyTarget> targets{};
  for (const Event event : wanted) targets[static_cast<size_t>(event)] = &kAnyTarget;
  return targets;
}

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

// A sink that also takes records that a cursor has decoded before.
template <typename S, typename Target>
concept RunSink = RecordSink<S, Target> &&
    requires(S& sink, const Record& record, const Target& target) {
  sink.Give(record, target);
};

// The wanted records that a cursor has passed over, and counted, but not given, in the order of its
// trace.
class Run {
 public:
  // Longer ones are divided.
  static constexpr size_t kMost = 64;

  explicit Run(PcpuId pcpu) {
    for (Record& record : records_) record.pcpu = pcpu;
  }
  // Begins a new run; returns the place of its first record, whose pCPU is set.
  Record* Clear() {
    next_ = end_ = records_.data();
    return records_.data();
  }
  void SetEnd(const Record* end) { end_ = end; }
  // Returns the next records up to the time `through`. O(records up to it).
  std::span<const Record> TakeUpTo(Tsc through) {
    const Record* const begin = next_;
    const auto is_later = [through](const Record& record) { return record.tsc > through; };
    next_ = through == kEndOfTime ? end_ : std::find_if(begin, end_, is_later);
    return {begin, next_};
  }

  static constexpr Tsc kEndOfTime{~uint64_t{0}};

 private:
  std::array<Record, kMost> records_;
  const Record* next_ = records_.data();
  const Record* end_ = records_.data();
};

// What the cursors of a stream know of common records by their first word, of which a trace has
// some dozens: a hash table that forgets everything when it is a quarter full. The cursors share
// it, so that it stays in the processor's nearest cache however many there are. It owns what copies
// of one cursor share.
class HeadCache {
 public:
  struct Entry {
    uint32_t word = 0;
    uint8_t size = 0;                 // bytes of the record; 0: the entry is free
    bool names_running_vcpu = false;  // the record says which vCPU runs
    bool crosses = false;             // trace::Crosses(head.event)
    uint8_t number = 0;               // counts up from 0 in the order of first records
    RecordHead head;
  };
  static_assert(sizeof(Entry) == 16);
  static constexpr size_t kSize = 1024;
  static constexpr size_t kMaxHeads = 256;

  // The records that one cursor has taken.
  struct Counts {
    std::array<uint64_t, kMaxHeads> by_head{};  // by Entry::number
    PcpuVolume volume;                          // all that are not in by_head
  };

  HeadCache() { Clear(); }
  HeadCache(const HeadCache&) = delete;
  HeadCache& operator=(const HeadCache&) = delete;

  // Returns new counts, which live as long as the cache.
  Counts& AddCounts() { return *counts_.emplace_back(std::make_unique<Counts>()); }
  // Returns a new run of the pCPU, which lives as long as the cache.
  Run& AddRun(PcpuId pcpu) { return *runs_.emplace_back(std::make_unique<Run>(pcpu)); }
  // Adds to the volume what these counts of the cache have.
  void AddTo(PcpuVolume& volume, const Counts& counts) const;

  // Returns the place where the entry of the word most probably is.
  const Entry& Guess(uint32_t word) const { return entries_[Place(word)]; }
  // Returns the entry of the word, made if there is none; null for records that are not common.
  // O(1); O(counts) when it forgets.
  const Entry* Look(uint32_t word);

 private:
  // Returns the entry of the word, or the free one where it belongs.
  Entry& Find(uint32_t word) {
    size_t at = Place(word);
    while (entries_[at].size != 0 && entries_[at].word != word) at = (at + 1) % kSize;
    return entries_[at];
  }
  void Forget();
  void Clear();
  [[nodiscard]] static size_t Place(uint32_t word) { return MultiplyHash(word) >> 22; }

  std::array<Entry, kSize> entries_{};
  size_t known_ = 0;  // entries that are not free
  std::vector<std::unique_ptr<Counts>> counts_;
  std::vector<std::unique_ptr<Run>> runs_;
};

// Walks through one pCPU's items. Their TSC never goes back: a record whose TSC its neighbours
// contradict keeps its place, inherits the TSC before it, and is announced by a kDamaged item of 0
// bytes.
class Cursor {
 public:
  // Walks from the window with the index `first_window` on, as if nothing were known of what comes
  // before. `file`, `windows` and `heads` outlive the cursor. O(1), beside a search for the first
  // TSC.
  Cursor(Bytes file, const PcpuWindows& windows, HeadCache& heads, size_t first_window = 0);

  [[nodiscard]] PcpuId pcpu() const { return pcpu_; }
  // Whether there are no more items.
  [[nodiscard]] bool done() const { return done_; }
  // The time of the next item, or of the next one behind the run.
  [[nodiscard]] Tsc tsc() const { return next_tsc_; }

  // Gives the items up to the time `limit` (not below tsc()) to the sink, for as long as it takes
  // them. Records of events that are not `wanted` are passed over, even up to the time `through`
  // (not below `limit`). If kCount, all that is given is counted, and all that is passed over but
  // rare kinds of items. Gives nothing only if the next item is later than tsc() said. O(1) and
  // some dozens of instructions for an item, fewer for one that is passed over.
  //
  // `wanted` has the events that say which vCPU runs (kRunstateChange, kContinueRunning).
  //
  // If kOrder is kCrossing, the cursor is left before its next item later than `limit` that crosses
  // (trace::Crosses), or is no common record, or Run::kMost records behind the last item. The
  // wanted records before that item are its run: the next call begins with them, and GiveRun gives
  // them earlier.
  template <bool kCount, RecordOrder kOrder, typename Target, RecordSink<Target> Sink>
  void Take(Sink& sink, Tsc limit, Tsc through, const EventTargets<Target>& wanted);
  // Gives the records of the run up to the time `through`, all by default. `wanted` is what it was
  // when the run was found.
  template <typename Target, RunSink<Target> Sink>
  [[gnu::noinline]] void GiveRun(Sink& sink, const EventTargets<Target>& wanted,
                                 Tsc through = Run::kEndOfTime);
  // Passes over the common records of two cursors of one stream up to the time `through`, one of
  // each in turn, and counts none: where a record is depends on the one before, for which the
  // processor waits, so that two take hardly longer than one. Stops before an item of one of them
  // that is later, is no common record, or crosses (trace::Crosses), unless it is a change of a
  // runstate for whose first word is_known(index of the cursor, word) holds. Returns the index of
  // the cursor that stopped. To be called where Take has given an item, or SkimBoth has stopped.
  template <typename IsKnown>
  [[nodiscard]] static size_t SkimBoth(std::array<Cursor*, 2> cursors, Tsc through,
                                       const IsKnown& is_known);
  // Adds the records that have been taken to the volume.
  void AddTaken(PcpuVolume& volume) const;
  // Returns the bytes of the trace up to the place of a copy of this cursor that has gone on.
  // O(windows between them).
  [[nodiscard]] uint64_t BytesTo(const Cursor& later) const;
  // Adds the cursor's place, and what it knows there, without the vCPU that runs. The run is empty.
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
  // Makes the run: passes over the common records up to the time `through`, to the next wanted one
  // that crosses, or to one for which the run has no room.
  template <bool kCount, typename Target>
  [[gnu::noinline]] void FindRun(Tsc through, const EventTargets<Target>& wanted);
  // Where a cursor is while its records are passed over.
  struct Skim {
    explicit Skim(const Cursor& cursor)
        : at(cursor.file_ + cursor.pos_),
          last_start(cursor.file_ + cursor.end_ - std::min(cursor.end_, kMaxRecordBytes + 4)),
          tsc_offset(cursor.tsc_offset_),
          last(cursor.last_tsc_.value) {}
    // Passes over the next record, or returns false (SkimBoth).
    template <typename IsKnown>
    bool Step(HeadCache& heads, Tsc through, const IsKnown& is_known);
    void MoveTo(Cursor& cursor) const {
      cursor.pos_ = static_cast<uint64_t>(at - cursor.file_);
      cursor.last_tsc_ = cursor.next_tsc_ = Tsc{last};
    }

    const std::byte* at;
    const std::byte* last_start;
    uint64_t tsc_offset;
    uint64_t last;
  };
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
  Run* run_ = nullptr;              // that of heads_; null: none has been needed
  std::optional<VcpuRef> current_;  // the vCPU that runs after the last item
  HeadCache* heads_;
  HeadCache::Counts* counts_;  // those of heads_
  Item pending_;
  bool has_pending_;                  // pending_ is the next item
  bool tsc_damage_reported_ = false;  // the damage item of the record at pos_ has been given
  bool loss_begin_reported_ = false;  // the kLossBegin of the record at pos_ has been given
  bool ended_ = false;                // kPcpuEnd has been prepared
  bool done_ = false;
};

template <bool kCount, RecordOrder kOrder, typename Target, RecordSink<Target> Sink>
void Cursor::Take(Sink& sink, Tsc limit, Tsc through, const EventTargets<Target>& wanted) {
  if constexpr (kOrder == RecordOrder::kCrossing) GiveRun<Target>(sink, wanted);
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
  if (kOrder == RecordOrder::kCrossing && !has_pending_) FindRun<kCount>(through, wanted);
}

// Inlined, so that what the sink has stays in registers.
template <bool kCount, typename Target, RecordSink<Target> Sink>
[[gnu::always_inline]] inline bool Cursor::TakeCommon(Sink& sink, Tsc limit, Tsc through,
                                                      const EventTargets<Target>& wanted) {
  const std::byte* const file = file_;
  const std::byte* at = file + pos_;
  // The last place from which a record of any size can be read, and a word behind it.
  const std::byte* const last_start = file + end_ - std::min(end_, kMaxRecordBytes + 4);
  const uint64_t tsc_offset = tsc_offset_;
  HeadCache& heads = *heads_;
  uint64_t* const taken = counts_->by_head.data();
  uint64_t last = last_tsc_.value;
  // The time of the next item, if that is known.
  std::optional<Tsc> next;
  bool common = false;  // the record at `at` is common, as far as was looked
  bool more = true;
  const HeadCache::Entry* known = &heads.Guess(at <= last_start ? LoadUnchecked<uint32_t>(at) : 0);
  while (at <= last_start) {
    const auto word = LoadUnchecked<uint32_t>(at);
    if (known->word != word) [[unlikely]] {
      known = heads.Look(word);
      if (known == nullptr) break;
    }
    const Target* const target = wanted[static_cast<size_t>(known->head.event)];
    const uint32_t shape = word >> 28;
    const std::byte* const payload = at + 4 + (shape & 8);
    const std::byte* const behind = payload + size_t{shape & 7} * 4;
    __builtin_prefetch(behind + kPrefetchDistance);
    // The next record's entry is found before this record is dealt with: its address cannot be
    // predicted, so that the processor would wait for it.
    const HeadCache::Entry* const next_known = &heads.Guess(LoadUnchecked<uint32_t>(behind));
    // The time is its own or the last, chosen by a mask, for the same reason. One comparison for
    // "not before the last" and "no leap".
    const uint64_t has_tsc = uint64_t{0} - (shape >> 3);
    const uint64_t jump = (LoadUnchecked<uint64_t>(at + 4) + tsc_offset - last) & has_tsc;
    if (jump >= kSuspiciousTscJump) break;
    const uint64_t tsc = last + jump;
    if (target == nullptr) {
      if (tsc > through.value) {
        next = Tsc{tsc};
        common = true;
        break;
      }
      last = tsc;
      if (kCount) ++taken[known->number];
      at = behind;
      known = next_known;
      continue;
    }
    // Before its time is believed: what is no record has the time of the one before. Records that
    // name the vCPU that runs are wanted.
    if (known->names_running_vcpu && !CanExist(UnpackVcpu(LoadUnchecked<uint32_t>(payload))))
        [[unlikely]] {
      break;
    }
    if (tsc > limit.value) {
      next = Tsc{tsc};
      common = true;
      break;
    }
    last = tsc;
    if (kCount) ++taken[known->number];
    Record& record = sink.Slot(pcpu_);
    static_cast<RecordHead&>(record) = known->head;
    record.tsc = Tsc{tsc};
    record.offset = static_cast<uint64_t>(at - file);
    record.payload = Payload(payload, known->head.words);
    const bool names_vcpu = Sink::kReportsRunningVcpu && known->names_running_vcpu;
    more = sink.CommitRecord(names_vcpu ? UpdateCurrent(record) : current_, *target);
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

template <bool kCount, typename Target>
void Cursor::FindRun(Tsc through, const EventTargets<Target>& wanted) {
  if (run_ == nullptr) run_ = &heads_->AddRun(pcpu_);
  Record* passed = run_->Clear();
  const Record* const end_of_run = passed + Run::kMost;
  const std::byte* const file = file_;
  const std::byte* at = file + pos_;
  const std::byte* const last_start = file + end_ - std::min(end_, kMaxRecordBytes + 4);
  const uint64_t tsc_offset = tsc_offset_;
  uint64_t* const taken = counts_->by_head.data();
  uint64_t last = last_tsc_.value;
  std::optional<Tsc> next;  // the time of the item behind the run, if that is a common record
  while (at <= last_start) {
    const auto word = LoadUnchecked<uint32_t>(at);
    const HeadCache::Entry* known = &heads_->Guess(word);
    if (known->word != word) [[unlikely]] {
      known = heads_->Look(word);
      if (known == nullptr) break;
    }
    const uint32_t shape = word >> 28;
    const std::byte* const payload = at + 4 + (shape & 8);
    const std::byte* const behind = payload + size_t{shape & 7} * 4;
    __builtin_prefetch(behind + kPrefetchDistance);
    const uint64_t has_tsc = uint64_t{0} - (shape >> 3);
    const uint64_t jump = (LoadUnchecked<uint64_t>(at + 4) + tsc_offset - last) & has_tsc;
    if (jump >= kSuspiciousTscJump) break;
    const Target* const target = wanted[static_cast<size_t>(known->head.event)];
    if (known->crosses) {
      // Before its time is believed, as in TakeCommon.
      if (known->names_running_vcpu && !CanExist(UnpackVcpu(LoadUnchecked<uint32_t>(payload))))
          [[unlikely]] {
        break;
      }
      if (target == nullptr && known->names_running_vcpu && last + jump <= through.value) {
        break;  // Prepare notes who runs
      }
    }
    const bool stops = (known->crosses && target != nullptr) || passed == end_of_run;
    if (stops || last + jump > through.value) {
      next = Tsc{last + jump};
      break;
    }
    last += jump;
    if (kCount) ++taken[known->number];
    if (target != nullptr) {
      static_cast<RecordHead&>(*passed) = known->head;
      passed->tsc = Tsc{last};
      passed->offset = static_cast<uint64_t>(at - file);
      passed->payload = Payload(payload, known->head.words);
      ++passed;
    }
    at = behind;
  }
  run_->SetEnd(passed);
  pos_ = static_cast<uint64_t>(at - file);
  last_tsc_ = Tsc{last};
  if (next) {
    next_tsc_ = *next;
  } else {
    Prepare();
  }
}

template <typename IsKnown>
[[gnu::always_inline]] inline bool Cursor::Skim::Step(HeadCache& heads, Tsc through,
                                                      const IsKnown& is_known) {
  if (at > last_start) [[unlikely]] {
    return false;
  }
  const auto word = LoadUnchecked<uint32_t>(at);
  const HeadCache::Entry* known = &heads.Guess(word);
  if (known->word != word) [[unlikely]] {
    known = heads.Look(word);
    if (known == nullptr) return false;
  }
  const uint32_t shape = word >> 28;
  const std::byte* const payload = at + 4 + (shape & 8);
  const uint64_t has_tsc = uint64_t{0} - (shape >> 3);
  const uint64_t jump = (LoadUnchecked<uint64_t>(at + 4) + tsc_offset - last) & has_tsc;
  if (jump >= kSuspiciousTscJump || last + jump > through.value) [[unlikely]] {
    return false;
  }
  if (known->crosses) {
    if (!known->names_running_vcpu || !is_known(LoadUnchecked<uint32_t>(payload))) return false;
  }
  last += jump;
  at = payload + size_t{shape & 7} * 4;
  __builtin_prefetch(at + kPrefetchDistance);
  return true;
}

template <typename IsKnown>
[[gnu::noinline]] size_t Cursor::SkimBoth(std::array<Cursor*, 2> cursors, Tsc through,
                                          const IsKnown& is_known) {
  HeadCache& heads = *cursors[0]->heads_;
  Skim first(*cursors[0]);
  Skim second(*cursors[1]);
  size_t stopped = 0;
  for (;; stopped = 0) {
    if (!first.Step(heads, through, [&](uint32_t word) { return is_known(0, word); })) break;
    stopped = 1;
    if (!second.Step(heads, through, [&](uint32_t word) { return is_known(1, word); })) break;
  }
  first.MoveTo(*cursors[0]);
  second.MoveTo(*cursors[1]);
  return stopped;
}

template <typename Target, RunSink<Target> Sink>
void Cursor::GiveRun(Sink& sink, const EventTargets<Target>& wanted, Tsc through) {
  if (run_ == nullptr) return;
  for (const Record& record : run_->TakeUpTo(through)) {
    sink.Give(record, *wanted[static_cast<size_t>(record.event)]);
  }
}

}  // namespace xenoscope::trace
