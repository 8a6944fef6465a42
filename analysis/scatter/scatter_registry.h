// All scatterplots of `xenoscope timeline`. To add one, declare its maker here and add a row to
// kAllScatters.
#pragma once

#include <array>
#include <memory>
#include <string_view>

#include "analysis/scatter/scatter.h"

namespace xenoscope::analysis {

std::unique_ptr<Scatter> MakePcpuScatter(ScatterOptions options);
std::unique_ptr<Scatter> MakeRunstateScatter(ScatterOptions options);
std::unique_ptr<Scatter> MakeRunstateTimeScatter(ScatterOptions options);
std::unique_ptr<Scatter> MakeExitAddressScatter(ScatterOptions options);
std::unique_ptr<Scatter> MakeWakeToHaltScatter(ScatterOptions options);
std::unique_ptr<Scatter> MakeIoScatter(ScatterOptions options);
std::unique_ptr<Scatter> MakeIrqScatter(ScatterOptions options);
std::unique_ptr<Scatter> MakeCr3Scatter(ScatterOptions options);
std::unique_ptr<Scatter> MakeRdtscScatter(ScatterOptions options);
std::unique_ptr<Scatter> MakeExternalInterruptCycles(ScatterOptions options);
std::unique_ptr<Scatter> MakeExternalInterruptAddress(ScatterOptions options);

inline constexpr std::array kAllScatters = {
    ScatterInfo{"pcpu", "", false, "Where vCPUs run", "pCPU",
                "the pCPU on which a vCPU begins to run", ValueKind::kNumber, MakePcpuScatter},
    ScatterInfo{"runstate", "", false, "Runstates of vCPUs", "runstate",
                "the runstate that a vCPU enters: -1 lost, 0 blocked, 1 offline, 2 runnable, "
                "3 running",
                ValueKind::kState, MakeRunstateScatter},
    ScatterInfo{"runstate-time", "", false, "Time in runstates", "time in the state",
                "how long a vCPU was in a runstate, at the end of it", ValueKind::kCycles,
                MakeRunstateTimeScatter},
    ScatterInfo{"vmexit-eip", "", false, "Addresses of VM exits", "guest address",
                "the guest's address at each VM exit", ValueKind::kAddress, MakeExitAddressScatter},
    ScatterInfo{"wake-to-halt", "", false, "From wake to halt", "time awake",
                "from the entry with the interrupt that woke a guest until it blocks again",
                ValueKind::kCycles, MakeWakeToHaltScatter},
    ScatterInfo{"io", "PORT", false, "Time of I/O port accesses", "time of the exit",
                "how long VM exits for I/O ports took", ValueKind::kCycles, MakeIoScatter},
    ScatterInfo{"irq", "", false, "Interrupts handled", "pCPU",
                "the pCPU that handled a physical interrupt", ValueKind::kNumber, MakeIrqScatter},
    ScatterInfo{"cr3-switch", "", false, "Changes of address space", "page frame of cr3",
                "the page frame that a guest writes to cr3 (shadow paging)", ValueKind::kAddress,
                MakeCr3Scatter},
    ScatterInfo{"rdtsc", "", false, "TSC as guests read it", "value",
                "the answers to emulated RDTSC", ValueKind::kNumber, MakeRdtscScatter},
    ScatterInfo{"extint-cycles", "VECTOR", false, "Time of external interrupts", "time of the exit",
                "how long VM exits for external interrupts took (VMX tells the vector)",
                ValueKind::kCycles, MakeExternalInterruptCycles},
    ScatterInfo{"interrupt-eip", "VECTOR", true, "Addresses of external interrupts",
                "guest address", "the guest's address when an external interrupt came (VMX)",
                ValueKind::kAddress, MakeExternalInterruptAddress},
};

// Returns the scatterplot of this name, or null.
inline const ScatterInfo* FindScatter(std::string_view name) {
  for (const ScatterInfo& info : kAllScatters) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

}  // namespace xenoscope::analysis
