// All pCPUs' records as one stream in the order of time.
//
// Each pCPU's records are in order already, so this is a k-way merge; a heap holds the pCPUs, and
// the one at hand is followed without touching the heap for as long as it stays ahead of the next.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "trace/cursor.h"
#include "trace/record.h"
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
      if (Batch().empty()) return nullptr;
    }
    return &batch_[next_++];
  }

  // The next items, at most kBatch of them, valid until the next call; none at the end. For loops
  // that want no call an item, and for handing the work to another thread.
  std::span<const Item> Batch() {
    next_ = 0;
    filled_ = Fill(batch_.data());
    return {batch_.data(), filled_};
  }

  // As Batch(), into `out`, which holds kBatch items.
  size_t Fill(Item* out);

  static constexpr size_t kBatch = 128;

 private:
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

}  // namespace xenoscope::trace
