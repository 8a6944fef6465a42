#include "trace/ordered_stream.h"

#include <algorithm>
#include <limits>

namespace xenoscope::trace {
namespace {

bool Earlier(const Cursor* a, const Cursor* b) {
  if (a->tsc() != b->tsc()) return a->tsc() < b->tsc();
  return a->pcpu() < b->pcpu();
}

bool Later(const Cursor* a, const Cursor* b) { return Earlier(b, a); }

}  // namespace

OrderedStream::OrderedStream(Bytes file, const WindowIndex& index)
    : damages_(&index.damages), batch_(kBatch) {
  cursors_.reserve(index.pcpus.size());
  for (const PcpuWindows& windows : index.pcpus) cursors_.emplace_back(file, windows);
  for (Cursor& cursor : cursors_) heap_.push_back(&cursor);
  std::make_heap(heap_.begin(), heap_.end(), Later);
  if (!heap_.empty()) SiftDown();
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

size_t OrderedStream::Fill(Item* out) {
  size_t filled = 0;
  while (filled < kBatch && !heap_.empty()) {
    Cursor* first = heap_[0];
    filled += first->Take(out + filled, kBatch - filled, limit_);
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
  while (filled < kBatch && heap_.empty() && next_damage_ < damages_->size()) {
    Item& item = out[filled++];
    item = Item{};
    item.kind = ItemKind::kDamaged;
    item.damage = (*damages_)[next_damage_++];
    item.record.tsc = last_tsc_;
    item.record.offset = item.damage.offset;
  }
  return filled;
}

}  // namespace xenoscope::trace
