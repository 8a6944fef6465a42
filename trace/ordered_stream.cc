#include "trace/ordered_stream.h"

#include <algorithm>
#include <limits>

namespace xenoscope::trace {
namespace {

bool Earlier(const Cursor* a, const Cursor* b) {
  if (a->tsc() != b->tsc()) return a->tsc() < b->tsc();
  return a->item().record.pcpu < b->item().record.pcpu;
}

bool Later(const Cursor* a, const Cursor* b) { return Earlier(b, a); }

}  // namespace

OrderedStream::OrderedStream(Bytes file, const WindowIndex& index) : damages_(&index.damages) {
  cursors_.reserve(index.pcpus.size());
  for (const PcpuWindows& windows : index.pcpus) cursors_.emplace_back(file, windows);
  for (Cursor& cursor : cursors_) heap_.push_back(&cursor);
  std::make_heap(heap_.begin(), heap_.end(), Later);
}

// Restores the heap after its first has moved on in time, and finds how long the first may lead.
void OrderedStream::SiftDown() {
  const size_t size = heap_.size();
  Cursor* moved = heap_[0];
  size_t hole = 0;
  for (;;) {
    size_t child = 2 * hole + 1;
    if (child >= size) break;
    if (child + 1 < size && Earlier(heap_[child + 1], heap_[child])) ++child;
    if (!Earlier(heap_[child], moved)) break;
    heap_[hole] = heap_[child];
    hole = child;
  }
  heap_[hole] = moved;
  limit_ = Tsc{std::numeric_limits<uint64_t>::max()};
  if (size > 1) limit_ = heap_[1]->tsc();
  if (size > 2) limit_ = std::min(limit_, heap_[2]->tsc());
}

const Item* OrderedStream::NextOutOfLine() {
  if (!heap_.empty()) {
    started_ = true;
    if (heap_[0]->done()) {
      last_.record.tsc = heap_[0]->tsc();
      heap_[0] = heap_.back();
      heap_.pop_back();
    }
    if (!heap_.empty()) {
      SiftDown();
      return &heap_[0]->item();
    }
  }
  if (next_damage_ == damages_->size()) return nullptr;
  last_.kind = ItemKind::kDamaged;
  last_.damage = (*damages_)[next_damage_++];
  last_.record.offset = last_.damage.offset;
  return &last_;
}

}  // namespace xenoscope::trace
