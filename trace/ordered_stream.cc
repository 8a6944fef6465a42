#include "trace/ordered_stream.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <limits>

namespace xenoscope::trace {
namespace {

bool Earlier(const Cursor* a, const Cursor* b) {
  if (a->tsc() != b->tsc()) return a->tsc() < b->tsc();
  return a->pcpu() < b->pcpu();
}

bool Later(const Cursor* a, const Cursor* b) { return Earlier(b, a); }

// Returns the last of the pCPU's windows that begins at or before the time, or else the first one.
size_t WindowAt(Bytes file, const PcpuWindows& pcpu, Tsc time) {
  HeadCache heads;
  const auto begins_later = [&](const Window& window) {
    const auto index = static_cast<size_t>(&window - pcpu.windows.data());
    return Cursor(file, pcpu, heads, index).tsc() > time;
  };
  const auto later =
      std::partition_point(pcpu.windows.begin(), pcpu.windows.end(), std::not_fn(begins_later));
  return static_cast<size_t>(std::max<ptrdiff_t>(later - pcpu.windows.begin() - 1, 0));
}

// Fills a batch.
struct BatchSink {
  static constexpr bool kReportsRunningVcpu = true;
  Item* next;
  Item* end;
  Record& Slot(PcpuId pcpu) const {
    next->record.pcpu = pcpu;
    return next->record;
  }
  bool CommitRecord(const std::optional<VcpuRef>& ran, const AnyTarget& /*target*/) {
    next->kind = ItemKind::kRecord;
    next->current = ran;
    return ++next != end;
  }
  bool Commit(const Item& item) {
    *next = item;
    return ++next != end;
  }
  bool Full() const { return next == end; }
};

}  // namespace

OrderedStream::OrderedStream(Bytes file, const WindowIndex& index, std::optional<Tsc> from)
    : damages_(&index.damages), batch_(kBatch) {
  cursors_.reserve(index.pcpus.size());
  for (const PcpuWindows& windows : index.pcpus) {
    cursors_.emplace_back(file, windows, *heads_, from ? WindowAt(file, windows, *from) : 0);
  }
  for (Cursor& cursor : cursors_) heap_.push_back(&cursor);
  MakeHeap();
}

void OrderedStream::MakeHeap() {
  std::make_heap(heap_.begin(), heap_.end(), Later);
  if (!heap_.empty()) SiftDown();
}

// Restores the heap after the time of its first cursor has changed, and finds how long the first
// one stays first.
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

bool OrderedStream::TakeDamage(Item& item) {
  if (!heap_.empty() || next_damage_ == damages_->size()) return false;
  item = Item{};
  item.kind = ItemKind::kDamaged;
  item.damage = (*damages_)[next_damage_++];
  item.record.tsc = last_tsc_;
  item.record.offset = item.damage.offset;
  return true;
}

std::span<const Item> OrderedStream::Batch(Tsc through) {
  BatchSink sink{batch_.data(), batch_.data() + kBatch};
  Fill<true, RecordOrder::kTime>(through, kAllEvents, sink);
  return {batch_.data(), sink.next};
}

Volume OrderedStream::TakenVolume() const {
  Volume volume;
  for (const Cursor& cursor : cursors_) cursor.AddTaken(volume.PcpuAt(cursor.pcpu()));
  return volume;
}

void OrderedStream::SaveState(StateSnapshot& out) const {
  for (const Cursor& cursor : cursors_) cursor.SaveState(out);
}

}  // namespace xenoscope::trace
