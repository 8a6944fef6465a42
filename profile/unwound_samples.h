// The call chains of samples that were recorded with registers and pieces of stacks.
#pragma once

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "base/user_registers.h"
#include "profile/recorded_processes.h"
#include "recording/recording.h"
#include "symbolizer/process_images.h"

namespace xenoscope::profile {

// How the call chains in user mode of a recording ended.
struct UnwindCounts {
  std::array<uint64_t, kChainEnds> chains{};  // number of chains, by ChainEnd
  uint64_t callers = 0;
  uint64_t by_frame_pointer = 0;  // those of `callers` that no table gave
  uint64_t damaged_blocks = 0;    // blocks of stacks that could not be read

  [[nodiscard]] uint64_t Chains() const;
  [[nodiscard]] uint64_t of(ChainEnd end) const { return chains.at(static_cast<size_t>(end)); }
  void Add(const UnwindCounts& other);
};

// Unwinds the stacks of all samples of the recording, by several threads. From then on its samples
// have these callers, from temporary files: memory does not grow with the recording. A chain that
// does not reach its outermost frame ends with the address of a ChainEnd. `processes` and `images`
// know the processes' code. Does nothing for sources without stacks. Errors: those of
// Recording::OpenSamples; ResourceExhausted: no room for temporary files.
absl::StatusOr<UnwindCounts> UnwindStacks(recording::Recording& recording,
                                          const RecordedProcesses& processes,
                                          symbolizer::ProcessImages& images);

}  // namespace xenoscope::profile
