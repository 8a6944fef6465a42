// All pCPUs' records as one stream in the order of time.
//
// Each pCPU's records are in order already, so this is a k-way merge; a heap holds the pCPUs, and
// the one at hand is followed without touching the heap for as long as it stays ahead of the next.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "trace/cursor.h"
#include "trace/record.h"
#include "trace/volume.h"
#include "trace/windows.h"

namespace xenoscope::trace {

class OrderedStream {
 public:
  // `file` and `index` must outlive the stream.
  OrderedStream(Bytes file, const WindowIndex& index);

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
  // Calls take(const Item&) for the next items up to the time `through`, without the records of
  // events that are not `wanted`: faster than batches, as nothing is made of those. If not kCount,
  // nothing counts in the volume and the file's own damages do not come. See Cursor::Take.
  template <bool kCount, typename TakeItem>
  void ForEach(Tsc through, const EventSet& wanted, TakeItem&& take);

  // The time of the next item, or an earlier one; kEnd when there are no more.
  Tsc next_tsc() const { return heap_.empty() ? kEnd : heap_[0]->tsc(); }
  // What Batch() and Next() have given.
  Volume TakenVolume() const;

  static constexpr Tsc kEnd{~uint64_t{0}};
  static constexpr size_t kBatch = 128;

 private:
  template <bool kCount, typename Sink>
  void Drain(Tsc through, const EventSet& wanted, Sink& sink);
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
void OrderedStream::Drain(Tsc through, const EventSet& wanted, Sink& sink) {
  while (!heap_.empty() && !sink.Full()) {
    Cursor* first = heap_[0];
    if (first->tsc() > through) break;
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
}

template <bool kCount, typename TakeItem>
void OrderedStream::ForEach(Tsc through, const EventSet& wanted, TakeItem&& take) {
  struct Sink {
    TakeItem& take;
    Item item;
    Item& Slot() { return item; }
    bool Commit() {
      take(item);
      return true;
    }
    static bool Full() { return false; }
  };
  Sink sink{take, {}};
  Drain<kCount>(through, wanted, sink);
  if (!kCount || through != kEnd) return;
  while (TakeDamage(sink.item)) take(sink.item);
}

}  // namespace xenoscope::trace
