#include "sampler/perf/perf_ring.h"

#include <algorithm>
#include <atomic>

namespace xenoscope::sampler {

Bytes PerfRing::At(uint64_t position, size_t size) {
  const size_t at = position % mapping_.size;
  const Bytes ring(mapping_.data, mapping_.size);
  if (size <= ring.size() - at) return ring.subspan(at, size);
  const size_t first = ring.size() - at;
  joined_.assign(ring.begin() + static_cast<std::ptrdiff_t>(at), ring.end());
  joined_.insert(joined_.end(), ring.begin(),
                 ring.begin() + static_cast<std::ptrdiff_t>(size - first));
  return joined_;
}

double PerfRing::Drain(const std::function<void(Bytes)>& take) {
  using Position = decltype(mapping_.page->data_head);
  const uint64_t head =
      std::atomic_ref<Position>(mapping_.page->data_head).load(std::memory_order_acquire);
  uint64_t tail = mapping_.page->data_tail;  // only this reader writes it
  if (head - tail > mapping_.size) {  // not possible: the kernel does not overtake the reader
    damaged_ += mapping_.size;
    tail = head;
  }
  const double used = static_cast<double>(head - tail) / static_cast<double>(mapping_.size);
  while (tail != head) {
    const uint64_t left = head - tail;
    perf_event_header header{};
    if (left >= sizeof header) {
      header = LoadUnchecked<perf_event_header>(At(tail, sizeof header).data());
    }
    if (header.size < sizeof header || header.size > left || header.size % sizeof(uint64_t) != 0) {
      damaged_ += left;
      break;
    }
    take(At(tail, header.size));
    tail += header.size;
  }
  std::atomic_ref<Position>(mapping_.page->data_tail).store(head, std::memory_order_release);
  return used;
}

}  // namespace xenoscope::sampler
