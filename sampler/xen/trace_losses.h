// Counts, while a trace passes, what Xen has lost of it: records that found their pCPU's buffer
// full. It looks at each record's header only, and takes no trace apart that is damaged: then what
// comes later is not counted.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/tsc.h"

namespace xenoscope::sampler {

// Take is one thread's, the counts are anybody's.
class TraceLosses {
 public:
  // The next bytes of the trace, as xentrace writes it (trace/windows.h, trace/record.h), divided
  // anywhere. O(records).
  void Take(Bytes bytes);

  uint64_t records() const { return records_.load(std::memory_order_relaxed); }
  // The time of pCPUs in which records were lost, from the first lost one to the next that was not.
  Cycles cycles() const { return cycles_.load(std::memory_order_relaxed); }

 private:
  // Takes what is complete; returns how many bytes that is.
  size_t TakeWhole(Bytes bytes);
  // The size of what begins there; 0: more bytes have to come to tell, or to complete it.
  size_t TakeOne(Bytes bytes);
  size_t TakeWindow(Bytes bytes);
  void Count(Bytes record);

  static constexpr size_t kMaxRecordBytes = 40;       // 4 + 8 + 7 words of 4 bytes
  std::array<std::byte, kMaxRecordBytes> partial_{};  // what has begun and is not complete
  size_t partial_bytes_ = 0;
  uint64_t left_ = 0;  // bytes of the window
  uint64_t skip_ = 0;  // bytes that are no record
  bool broken_ = false;
  std::atomic<uint64_t> records_ = 0;
  std::atomic<uint64_t> cycles_ = 0;
};

}  // namespace xenoscope::sampler
