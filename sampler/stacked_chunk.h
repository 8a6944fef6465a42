// Writes samples that came with registers and pieces of user stacks, within limits, and counts what
// they take.
#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <span>

#include "base/ids.h"
#include "base/mode.h"
#include "recording/info.h"
#include "recording/sample_writer.h"
#include "recording/stack_block.h"
#include "sampler/stack_rate.h"

namespace xenoscope::sampler {

struct StackLimits {
  uint32_t piece_bytes = 0;                               // limit of a piece, as requested
  double bytes_per_second = StackRate::kBytesPerSecond;   // limit of what is stored
  uint64_t bytes = std::numeric_limits<uint64_t>::max();  // the same, of all time
};

// The samples of one domain. Of those beyond the limits the stacks are left out.
class StackedChunk {
 public:
  StackedChunk(DomainId domain, const StackLimits& limits);

  // Begins the samples of a drain.
  void Begin(std::chrono::steady_clock::time_point now) { rate_.Refill(now); }
  // Adds a sample of a thread that has no user mode, or in a recording without stacks.
  void Add(const recording::TimedEntry& entry, std::span<const Address> callers) {
    samples_.Add(entry, callers);
  }
  // Adds a sample with its stack; null: it is not known. Writes to `writer` what has become a full
  // block.
  void Add(const recording::TimedEntry& entry, const recording::UserStack* stack,
           std::span<const Address> callers, recording::SampleWriter& writer);
  // Writes all that was added.
  void Write(recording::SampleWriter& writer);

  [[nodiscard]] const recording::StackInfo& info() const { return info_; }

 private:
  [[nodiscard]] bool HasRoom() const {
    return rate_.HasRoom() && info_.stored_bytes < limits_.bytes;
  }

  DomainId domain_;
  StackLimits limits_;
  recording::TimedChunk samples_;
  recording::StackBlock block_;  // the stacks of samples_
  StackRate rate_;
  recording::StackInfo info_;
};

}  // namespace xenoscope::sampler
