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
    ScatterInfo{
        .name = "pcpu",
        .parameter = "",
        .title = "Where vCPUs run",
        .y_title = "pCPU",
        .about = "the pCPU on which a vCPU begins to run",
        .kind = ValueKind::kNumber,
        .figure = trace::Figure::kRunstates,
        .make = MakePcpuScatter,
    },
    ScatterInfo{
        .name = "runstate",
        .parameter = "",
        .title = "Runstates of vCPUs",
        .y_title = "runstate",
        .about = "the runstate that a vCPU enters: -1 lost, 0 blocked, 1 offline, 2 runnable, "
                 "3 running",
        .kind = ValueKind::kState,
        .figure = trace::Figure::kRunstates,
        .make = MakeRunstateScatter,
    },
    ScatterInfo{
        .name = "runstate-time",
        .parameter = "",
        .title = "Time in runstates",
        .y_title = "time in the state",
        .about = "the time that a vCPU spent in a runstate, at its end",
        .kind = ValueKind::kCycles,
        .figure = trace::Figure::kRunstates,
        .make = MakeRunstateTimeScatter,
    },
    ScatterInfo{
        .name = "vmexit-eip",
        .parameter = "",
        .title = "Addresses of VM exits",
        .y_title = "guest address",
        .about = "the guest's address at each VM exit",
        .kind = ValueKind::kAddress,
        .figure = trace::Figure::kExits,
        .make = MakeExitAddressScatter,
    },
    ScatterInfo{
        .name = "wake-to-halt",
        .parameter = "",
        .title = "From wake to halt",
        .y_title = "time awake",
        .about = "from the entry with the interrupt that woke a guest until it blocks again",
        .kind = ValueKind::kCycles,
        .figure = trace::Figure::kInjectedInterrupts,
        .make = MakeWakeToHaltScatter,
    },
    ScatterInfo{
        .name = "io",
        .parameter = "PORT",
        .title = "Time of I/O port accesses",
        .y_title = "time of the exit",
        .about = "the duration of VM exits for I/O ports",
        .kind = ValueKind::kCycles,
        .figure = trace::Figure::kExitContents,
        .make = MakeIoScatter,
    },
    ScatterInfo{
        .name = "irq",
        .parameter = "",
        .title = "Interrupts handled",
        .y_title = "pCPU",
        .about = "the pCPU that handled a physical interrupt",
        .kind = ValueKind::kNumber,
        .figure = trace::Figure::kIrqs,
        .make = MakeIrqScatter,
    },
    ScatterInfo{
        .name = "cr3-switch",
        .parameter = "",
        .title = "Changes of address space",
        .y_title = "page frame of cr3",
        .about = "the page frame that a guest writes to cr3 (shadow paging)",
        .kind = ValueKind::kAddress,
        .figure = trace::Figure::kExitContents,
        .make = MakeCr3Scatter,
    },
    ScatterInfo{
        .name = "rdtsc",
        .parameter = "",
        .title = "TSC as guests read it",
        .y_title = "value",
        .about = "the answers to emulated RDTSC",
        .kind = ValueKind::kNumber,
        .figure = trace::Figure::kExitContents,
        .make = MakeRdtscScatter,
    },
    ScatterInfo{
        .name = "extint-cycles",
        .parameter = "VECTOR",
        .title = "Time of external interrupts",
        .y_title = "time of the exit",
        .about = "the duration of VM exits for external interrupts (only VMX records the vector)",
        .kind = ValueKind::kCycles,
        .figure = trace::Figure::kExitContents,
        .make = MakeExternalInterruptCycles,
    },
    ScatterInfo{
        .name = "interrupt-eip",
        .parameter = "VECTOR",
        .needs_parameter = true,
        .title = "Addresses of external interrupts",
        .y_title = "guest address",
        .about = "the guest's address when an external interrupt came (VMX)",
        .kind = ValueKind::kAddress,
        .figure = trace::Figure::kExitContents,
        .make = MakeExternalInterruptAddress,
    },
};

// Returns the scatterplot of this name, or null.
inline const ScatterInfo* FindScatter(std::string_view name) {
  for (const ScatterInfo& info : kAllScatters) {
    if (info.name == name) return &info;
  }
  return nullptr;
}

}  // namespace xenoscope::analysis
