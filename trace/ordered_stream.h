// All pCPUs' records as one stream in the order of time.
//
// Each pCPU's records are in order already, so this is a k-way merge; a heap holds the pCPUs, and
// the one at hand is followed without touching the heap for as long as it stays ahead of the next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/state_snapshot.h"
#include "trace/cursor.h"
#include "trace/record.h"
#include "trace/volume.h"
#include "trace/windows.h"

namespace xenoscope::trace {

class OrderedStream {
 public:
  // Of the whole trace, or from somewhat before the time `from` on: each pCPU from the beginning of
  // a window. `file` and `index` must outlive the stream. O(pCPUs log windows).
  OrderedStream(Bytes file, const WindowIndex& index, std::optional<Tsc> from = std::nullopt);

  // The next item, valid until the next call; null at the end. Times never go back. Records of one
  // instant come in the order of their pCPU's trace, and a record without a TSC of its own follows
  // the one whose TSC it inherits. The file's own damages (outside any window) come last.
  // O(1) while one pCPU leads, else O(log pCPUs); allocates nothing.
  const Item* Next() {
    if (next_ == filled_) [[unlikely]] {
      filled_ = Batch().size();
      next_ = 0;
      if (filled_ == 0) return nullptr;
    }
    return &batch_[next_++];
  }

  // The next items up to the time `through`, at most kBatch of them, valid until the next call;
  // none when there are no more. For loops that want no call an item.
  std::span<const Item> Batch(Tsc through = kEnd);
  // Calls handler.TakeRecord(const Record&, target) for the next records up to the time `through`,
  // with what they are `wanted` for, and handler.TakeNonRecord(const Item&) for the other items:
  // faster than batches, as nothing is made of what is not wanted. If not kCount, nothing counts in
  // the volume and the file's own damages do not come. See Cursor::Take.
  template <bool kCount, typename Handler>
  void ForEach(Tsc through, const EventTargets& wanted, Handler& handler);

  // Gives the next items up to the time `through` to a sink, until it is full; otherwise as
  // ForEach. A sink is one of Cursor::Take that has bool Full().
  template <bool kCount, typename Sink>
  void Fill(Tsc through, const EventTargets& wanted, Sink& sink);

  // The time of the next item, or an earlier one; kEnd when there are no more.
  Tsc next_tsc() const { return heap_.empty() ? kEnd : heap_[0]->tsc(); }
  // What Batch() and Next() have given.
  Volume TakenVolume() const;
  // Where each pCPU's cursor stands.
  void SaveState(StateSnapshot& out) const;

  static constexpr Tsc kEnd{~uint64_t{0}};
  static constexpr size_t kBatch = 128;

 private:
  // Hands on to a handler.
  template <typename Handler>
  struct HandlerSink {
    static constexpr bool kReportsRunningVcpu = false;
    Handler& handler;
    const EventTargets& wanted;
    Record record;
    Record& Slot(PcpuId pcpu) {
      record.pcpu = pcpu;
      return record;
    }
    bool CommitRecord(const std::optional<VcpuRef>& /*ran*/, const void* target) {
      handler.TakeRecord(record, target);
      return true;
    }
    bool Commit(const Item& item) {
      if (item.kind == ItemKind::kRecord) {
        const void* target = wanted[static_cast<size_t>(item.record.event)];
        if (target != nullptr) handler.TakeRecord(item.record, target);
      } else {
        handler.TakeNonRecord(item);
      }
      return true;
    }
    static bool Full() { return false; }
  };

  // Not inlined: an Item's alignment would cost the loop over the records a register.
  template <typename Sink>
  [[gnu::noinline]] void GiveDamages(Sink& sink);
  // The next of the file's own damages, if all pCPUs have ended.
  bool TakeDamage(Item& item);
  void SiftDown();

  std::vector<Cursor> cursors_;
  std::vector<Cursor*> heap_;  // by (tsc, pCPU), the earliest first
  Tsc limit_;                  // up to here the first of the heap stays first
  const std::vector<Damage>* damages_;
  size_t next_damage_ = 0;
  Tsc last_tsc_;
  std::vector<Item> batch_;
  size_t next_ = 0;
  size_t filled_ = 0;
};

template <bool kCount, typename Sink>
void OrderedStream::Fill(Tsc through, const EventTargets& wanted, Sink& sink) {
  while (!heap_.empty() && !sink.Full()) {
    Cursor* first = heap_[0];
    if (first->tsc() > through) return;
    first->template Take<kCount>(sink, std::min(limit_, through), through, wanted);
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
  if (kCount && through == kEnd) GiveDamages(sink);
}

template <typename Sink>
void OrderedStream::GiveDamages(Sink& sink) {
  for (Item item; !sink.Full() && TakeDamage(item);) sink.Commit(item);
}

template <bool kCount, typename Handler>
void OrderedStream::ForEach(Tsc through, const EventTargets& wanted, Handler& handler) {
  HandlerSink<Handler> sink{handler, wanted, {}};
  Fill<kCount>(through, wanted, sink);
}

}  // namespace xenoscope::trace
