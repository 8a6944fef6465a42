// Takes the events of a kernel's CPUs in one order, that of time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "guests/ftrace/kernel_trace.h"

namespace xenoscope::guests {

// Gives each event to `take`, which takes a `const CpuCursor&` and returns whether to go on. Events
// of one time come by CPU. Returns whether `take` wanted all, and adds to `faults` what could not
// be read up to there. O(events * log CPUs).
template <typename Take>
bool TakeEventsInOrder(const KernelTrace& trace, const EventClock& clock, KernelTraceFaults& faults,
                       Take take) {
  std::vector<CpuCursor> cursors;
  cursors.reserve(trace.cpus());
  for (size_t cpu = 0; cpu < trace.cpus(); ++cpu) cursors.emplace_back(trace, cpu, clock);
  const auto is_later = [](const CpuCursor* a, const CpuCursor* b) {
    if (a->at() != b->at()) return a->at() > b->at();
    return a->cpu() > b->cpu();
  };
  std::vector<CpuCursor*> heap;
  heap.reserve(cursors.size());
  for (CpuCursor& cursor : cursors) {
    if (cursor.Next()) heap.push_back(&cursor);
  }
  std::ranges::make_heap(heap, is_later);
  bool goes_on = true;
  while (goes_on && !heap.empty()) {
    std::ranges::pop_heap(heap, is_later);
    CpuCursor& cursor = *heap.back();
    goes_on = take(std::as_const(cursor));
    if (cursor.Next()) {
      std::ranges::push_heap(heap, is_later);
    } else {
      heap.pop_back();
    }
  }
  for (const CpuCursor& cursor : cursors) faults.Add(cursor.faults());
  return goes_on;
}

}  // namespace xenoscope::guests
