// All pCPUs' records as one stream in the order of time.
//
// Each pCPU's records are in order already, so this is a k-way merge; a heap holds the pCPUs, and
// the one at hand is followed without touching the heap for as long as it stays ahead of the next.
#pragma once

#include <cstdint>
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
    if (heap_.empty() || !started_) [[unlikely]] {
      return NextOutOfLine();
    }
    Cursor* first = heap_[0];
    first->Advance();
    if (first->tsc() <= limit_ && !first->done()) [[likely]] {
      return &first->item();
    }
    return NextOutOfLine();
  }

 private:
  // The next item when the first of the heap may have changed.
  const Item* NextOutOfLine();
  void SiftDown();

  std::vector<Cursor> cursors_;
  std::vector<Cursor*> heap_;  // by (tsc, pCPU), the earliest first
  Tsc limit_;                  // up to here the first of the heap stays first
  bool started_ = false;
  const std::vector<Damage>* damages_;
  size_t next_damage_ = 0;
  Item last_;
};

}  // namespace xenoscope::trace
