// All pCPUs' records as one stream in the order of time.
//
// Each pCPU's records are in order already, so this is a k-way merge. A heap holds the pCPUs; the
// first of them is followed without touching the heap for as long as it stays before the others.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/state_snapshot.h"
#include "trace/cursor.h"
#include "trace/named_vcpus.h"
#include "trace/record.h"
#include "trace/volume.h"
#include "trace/windows.h"

namespace xenoscope::trace {

// A sink of Cursor::Take that can be asked whether it has no room for another item.
template <typename S, typename Target>
concept BoundedSink = RecordSink<S, Target> && requires(const S& sink) {
  { sink.Full() } -> std::same_as<bool>;
};

// Takes records of wanted events with their targets, and all other items.
template <typename H, typename Target>
concept RecordHandler = requires(H& handler, const Record& record, const Target& target,
                                 const Item& item) {
  handler.TakeRecord(record, target);
  handler.TakeNonRecord(item);
};

// A sink that takes the items of one pCPU after the other: BeginPcpu comes before them, and EndPcpu
// behind them, with whether there are no more up to the time that was asked for. Full is asked for
// each pCPU.
template <typename S, typename Target>
concept PcpuSink = BoundedSink<S, Target> && requires(S& sink, PcpuId pcpu, bool complete) {
  sink.BeginPcpu(pcpu);
  sink.EndPcpu(complete);
};

class OrderedStream {
 public:
  // Streams the whole trace, or the trace from somewhat before the time `from` on: each pCPU from
  // the beginning of a window. `file` and `index` outlive the stream. O(pCPUs log windows).
  OrderedStream(Bytes file, const WindowIndex& index, std::optional<Tsc> from = std::nullopt);

  // Returns the next item, valid until the next call; null at the end. Times never go back. Records
  // of one instant come in the order of their pCPU's trace, and a record without a TSC of its own
  // follows the one whose TSC it inherits. The file's own damages, which are outside any window,
  // come last. O(1) while one pCPU leads, else O(log pCPUs); allocates nothing.
  const Item* Next() {
    if (next_ == filled_) [[unlikely]] {
      filled_ = Batch().size();
      next_ = 0;
      if (filled_ == 0) return nullptr;
    }
    return &batch_[next_++];
  }

  // Returns the next items up to the time `through`, at most kBatch of them, valid until the next
  // call; none when there are no more. For loops that want no call for each item.
  std::span<const Item> Batch(Tsc through = kEnd);
  // Calls handler.TakeRecord(record, target) for the next records of `wanted` events up to the time
  // `through`, and handler.TakeNonRecord(item) for the other items: faster than batches, as nothing
  // is made of what is not wanted. If not kCount, nothing counts in the volume, and the file's own
  // damages do not come. Cursor::Take says more.
  template <bool kCount, RecordOrder kOrder, typename Target, RecordHandler<Target> Handler>
  void ForEach(Tsc through, const EventTargets<Target>& wanted, Handler& handler);
  // As ForEach in the order kCrossing up to the time `through`, one group of pCPUs after the other.
  // `groups` has the number of each pCPU's group, by number of the pCPU.
  template <bool kCount, typename Target, RecordHandler<Target> Handler>
  void ForEachGroup(Tsc through, std::span<const uint32_t> groups,
                    const EventTargets<Target>& wanted, Handler& handler);
  // FindNamedVcpus of what comes next.
  [[nodiscard]] std::optional<NamedVcpus> NamedUpTo(Tsc through) const {
    return FindNamedVcpus(heap_, through);
  }
  // For a handler that is in a call of ForEach in the order kCrossing for a record or item of the
  // time `at` on the pCPU `by`: calls handler.TakeRecord for the records of another pCPU that are
  // before that in the order of time and pCPU, and have not come yet.
  template <typename Target, RecordHandler<Target> Handler>
  void CatchUp(PcpuId pcpu, PcpuId by, Tsc at, const EventTargets<Target>& wanted,
               Handler& handler);

  // Gives the next items up to the time `through` to the sink, until it is full; otherwise as
  // ForEach. In the order kCrossing the sink is never full.
  template <bool kCount, RecordOrder kOrder, typename Target, BoundedSink<Target> Sink>
  void Fill(Tsc through, const EventTargets<Target>& wanted, Sink& sink);

  // Gives the next items up to the time `through` of one pCPU after the other, in the order of the
  // pCPUs, each until the sink is full: for those who put them in the order of time themselves.
  // Counts nothing in the volume, and does not give the file's own damages.
  template <typename Target, PcpuSink<Target> Sink>
  void FillByPcpu(Tsc through, const EventTargets<Target>& wanted, Sink& sink);
  // Gives the file's own damages, if all pCPUs have ended, until the sink is full.
  // Not inlined: an Item's alignment would cost the loop over the records a register.
  template <typename Sink>
  [[gnu::noinline]] void GiveDamages(Sink& sink);

  // The number of pCPUs that have more items.
  [[nodiscard]] size_t open_pcpus() const { return heap_.size(); }
  // A number above that of every pCPU of the trace.
  [[nodiscard]] uint32_t pcpu_end() const {
    return cursors_.empty() ? 0 : cursors_.back().pcpu().value + 1;
  }
  // The time of the next item, or an earlier time; kEnd when there are no more items.
  [[nodiscard]] Tsc next_tsc() const { return heap_.empty() ? kEnd : heap_[0]->tsc(); }
  // Returns the counts of what was given.
  [[nodiscard]] Volume TakenVolume() const;
  // Adds the place of each pCPU's cursor.
  void SaveState(StateSnapshot& out) const;

  static constexpr Tsc kEnd{~uint64_t{0}};
  static constexpr size_t kBatch = 128;

 private:
  // Gives everything to a handler.
  template <typename Target, typename Handler>
  struct HandlerSink {
    static constexpr bool kReportsRunningVcpu = false;
    Handler& handler;
    const EventTargets<Target>& wanted;
    Record record;
    Record& Slot(PcpuId pcpu) {
      record.pcpu = pcpu;
      return record;
    }
    bool CommitRecord(const std::optional<VcpuRef>& /*ran*/, const Target& target) {
      handler.TakeRecord(record, target);
      return true;
    }
    void Give(const Record& passed, const Target& target) { handler.TakeRecord(passed, target); }
    bool Commit(const Item& item) {
      if (item.kind == ItemKind::kRecord) {
        const Target* target = wanted[static_cast<size_t>(item.record.event)];
        if (target != nullptr) handler.TakeRecord(item.record, *target);
      } else {
        handler.TakeNonRecord(item);
      }
      return true;
    }
    static bool Full() { return false; }
  };

  // Takes the next of the file's own damages, if all pCPUs have ended. Returns whether it has.
  bool TakeDamage(Item& item);
  void SiftDown();
  // Makes a heap of the cursors in heap_.
  void MakeHeap();

  // Gives the items of the heap's pCPUs up to the time `through`, but not the file's own damages.
  template <bool kCount, RecordOrder kOrder, typename Target, BoundedSink<Target> Sink>
  void Merge(Tsc through, const EventTargets<Target>& wanted, Sink& sink);
  // Gives the runs of all cursors.
  template <typename Target, typename Sink>
  void GiveRuns(const EventTargets<Target>& wanted, Sink& sink);

  std::unique_ptr<HeadCache> heads_ = std::make_unique<HeadCache>();
  std::vector<Cursor> cursors_;  // by pCPU
  std::vector<Cursor*> heap_;    // by (tsc, pCPU), the earliest first
  Tsc limit_;                    // the time up to which the first of the heap stays first
  const std::vector<Damage>* damages_;
  size_t next_damage_ = 0;
  Tsc last_tsc_;
  std::vector<Item> batch_;
  size_t next_ = 0;
  size_t filled_ = 0;
};

template <bool kCount, RecordOrder kOrder, typename Target, BoundedSink<Target> Sink>
void OrderedStream::Fill(Tsc through, const EventTargets<Target>& wanted, Sink& sink) {
  Merge<kCount, kOrder, Target>(through, wanted, sink);
  if (kCount && through == kEnd) GiveDamages(sink);
}

template <bool kCount, RecordOrder kOrder, typename Target, BoundedSink<Target> Sink>
void OrderedStream::Merge(Tsc through, const EventTargets<Target>& wanted, Sink& sink) {
  while (!heap_.empty() && !sink.Full()) {
    Cursor* first = heap_[0];
    if (first->tsc() > through) break;
    first->template Take<kCount, kOrder, Target>(sink, std::min(limit_, through), through, wanted);
    if (first->done()) {
      last_tsc_ = first->tsc();
      heap_[0] = heap_.back();
      heap_.pop_back();
      if (heap_.empty()) break;
      SiftDown();
    } else if (first->tsc() > limit_) {
      SiftDown();
    }
  }
  if constexpr (kOrder == RecordOrder::kCrossing) GiveRuns(wanted, sink);
}

template <typename Target, PcpuSink<Target> Sink>
void OrderedStream::FillByPcpu(Tsc through, const EventTargets<Target>& wanted, Sink& sink) {
  heap_.clear();
  for (Cursor& cursor : cursors_) {
    sink.BeginPcpu(cursor.pcpu());
    if (!cursor.done() && cursor.tsc() <= through && !sink.Full()) {
      cursor.template Take<false, RecordOrder::kTime, Target>(sink, through, through, wanted);
      if (cursor.done()) last_tsc_ = std::max(last_tsc_, cursor.tsc());
    }
    sink.EndPcpu(cursor.done() || cursor.tsc() > through);
    if (!cursor.done()) heap_.push_back(&cursor);
  }
  MakeHeap();
}

template <typename Target, typename Sink>
void OrderedStream::GiveRuns(const EventTargets<Target>& wanted, Sink& sink) {
  for (Cursor* cursor : heap_) cursor->GiveRun<Target>(sink, wanted);
}

template <typename Sink>
void OrderedStream::GiveDamages(Sink& sink) {
  for (Item item; !sink.Full() && TakeDamage(item);) sink.Commit(item);
}

template <bool kCount, RecordOrder kOrder, typename Target, RecordHandler<Target> Handler>
void OrderedStream::ForEach(Tsc through, const EventTargets<Target>& wanted, Handler& handler) {
  HandlerSink<Target, Handler> sink{handler, wanted, {}};
  Fill<kCount, kOrder, Target>(through, wanted, sink);
}

template <bool kCount, typename Target, RecordHandler<Target> Handler>
void OrderedStream::ForEachGroup(Tsc through, std::span<const uint32_t> groups,
                                 const EventTargets<Target>& wanted, Handler& handler) {
  HandlerSink<Target, Handler> sink{handler, wanted, {}};
  std::vector<Cursor*> cursors = std::move(heap_);
  const auto group_of = [&groups](const Cursor* cursor) { return groups[cursor->pcpu().value]; };
  std::ranges::sort(cursors, {}, [&](const Cursor* cursor) {
    return std::pair(group_of(cursor), cursor->pcpu());
  });
  std::vector<Cursor*> open;
  for (auto begin = cursors.begin(); begin != cursors.end();) {
    const auto end = std::find_if(begin, cursors.end(), [&](const Cursor* cursor) {
      return group_of(cursor) != group_of(*begin);
    });
    heap_.assign(begin, end);
    MakeHeap();
    Merge<kCount, RecordOrder::kCrossing, Target>(through, wanted, sink);
    open.insert(open.end(), heap_.begin(), heap_.end());
    begin = end;
  }
  heap_ = std::move(open);
  MakeHeap();
}

template <typename Target, RecordHandler<Target> Handler>
void OrderedStream::CatchUp(PcpuId pcpu, PcpuId by, Tsc at, const EventTargets<Target>& wanted,
                            Handler& handler) {
  const auto cursor = std::ranges::lower_bound(cursors_, pcpu, {}, &Cursor::pcpu);
  if (cursor == cursors_.end() || cursor->pcpu() != pcpu || pcpu == by) return;
  if (by < pcpu) {
    if (at == Tsc{0}) return;
    at = Tsc{at.value - 1};
  }
  // The record that the handler is taking is in another sink.
  HandlerSink<Target, Handler> sink{handler, wanted, {}};
  cursor->template GiveRun<Target>(sink, wanted, at);
}

}  // namespace xenoscope::trace
