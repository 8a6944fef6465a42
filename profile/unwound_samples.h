// The call chains of samples that were recorded with registers and pieces of stacks.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/user_registers.h"
#include "profile/recorded_processes.h"
#include "recording/recording.h"
#include "symbolizer/domain_symbols.h"

namespace xenoscope::profile {

// How call chains ended.
struct UnwindCounts {
  std::array<uint64_t, kChainEnds> chains{};  // number of chains, by ChainEnd
  uint64_t callers = 0;
  uint64_t by_frame_pointer = 0;  // those of `callers` that no table gave
  uint64_t damaged_blocks = 0;    // blocks of stacks that could not be read

  [[nodiscard]] uint64_t Chains() const;
  [[nodiscard]] uint64_t of(ChainEnd end) const { return chains.at(static_cast<size_t>(end)); }
  void Add(const UnwindCounts& other);
};

// How the call chains in the kernel of a guest ended that was sampled from dom0.
struct KernelUnwindCounts {
  UnwindCounts by_orc{};
  uint64_t by_frame_pointers = 0;  // chains that stay as they were recorded
  std::string why_no_orc;          // why there are such chains, for a user
  // Modules of the kernel that chains met and that have no ORC, each with the reason: "brd: ...".
  std::vector<std::string> modules_without_orc;
};

struct UnwindResults {
  UnwindCounts user;            // chains in user mode
  UnwindCounts guest_programs;  // chains in user mode of guests that were sampled from dom0
  std::map<DomainId, KernelUnwindCounts> kernels;
};

// Unwinds the stacks of all samples of the recording, by several threads. From then on its samples
// have these callers, from temporary files: memory does not grow with the recording. A chain that
// does not reach its outermost frame ends with the address of a ChainEnd. `processes` and `symbols`
// know the code; samples of a kernel without ORC keep the callers that they have. Does nothing for
// sources without stacks. Errors: those of Recording::OpenSamples; ResourceExhausted: no room for
// temporary files.
absl::StatusOr<UnwindResults> UnwindStacks(recording::Recording& recording,
                                           const RecordedProcesses& processes,
                                           symbolizer::DomainSymbols& symbols);

}  // namespace xenoscope::profile
