// Counts the losses of a trace while it passes: records that found their pCPU's buffer full. It
// looks at each record's header only, and stops at damage: later losses are not counted.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "base/tsc.h"

namespace xenoscope::sampler {

// A counter of losses. One thread calls Take; any thread may read the counts.
class TraceLosses {
 public:
  // Takes the next bytes of the trace, as xentrace writes it (trace/windows.h, trace/record.h), cut
  // anywhere. O(records).
  void Take(Bytes bytes);

  [[nodiscard]] uint64_t records() const { return records_.load(std::memory_order_relaxed); }
  // Returns the sum over pCPUs of the cycles from the first lost record to the next one that was
  // not lost.
  [[nodiscard]] Cycles cycles() const { return cycles_.load(std::memory_order_relaxed); }

 private:
  // Takes all complete records; returns their number of bytes.
  size_t TakeWhole(Bytes bytes);
  // Passes the records of the window up to a loss or to near the end; returns their bytes. This is
  // nearly all of a trace, and costs dom0 a few instructions a record.
  size_t PassRecords(Bytes bytes);
  // Returns the size of what begins there; 0: more bytes are needed to know or to complete it.
  size_t TakeOne(Bytes bytes);
  size_t TakeWindow(Bytes bytes);
  void Count(Bytes record);

  static constexpr size_t kMaxRecordBytes = 40;  // 4 + 8 + 7 words of 4 bytes
  // The beginning of a record that is not complete.
  std::array<std::byte, kMaxRecordBytes> partial_{};
  size_t partial_bytes_ = 0;
  uint64_t left_ = 0;  // bytes left of the window
  uint64_t skip_ = 0;  // bytes to skip, which are no record
  bool broken_ = false;
  std::atomic<uint64_t> records_ = 0;
  std::atomic<uint64_t> cycles_ = 0;
};

}  // namespace xenoscope::sampler
