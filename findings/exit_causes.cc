#include "findings/exit_causes.h"

#include <algorithm>
#include <array>

namespace xenoscope::findings {
namespace {

// A cause belongs to the exits that have all of its words; an empty word is in every name.
struct Cause {
  std::string_view reason;  // part of the reason
  std::string_view kind;    // the kind
  std::string_view number;  // part of the number
  std::string_view text;
};

// The first one that fits is taken.
constexpr std::array kCauses = {
    Cause{"", "cpuid", "",
          "CPUID always leaves an HVM or PVH guest. Code that runs it in a loop should keep the "
          "answer."},
    Cause{"", "rdtsc", "",
          "Xen emulates the TSC: tsc_mode is always_emulate, or the guest came from a host with "
          "another frequency. With tsc_mode=native on an invariant TSC the guest reads it without "
          "an exit."},
    Cause{"", "msr_write", "X2APIC_EOI",
          "The end of each interrupt leaves the guest: its APIC is emulated. Posted interrupts "
          "(Intel) or AVIC (AMD) avoid it; fewer interrupts make it rarer."},
    Cause{"", "msr_write", "X2APIC",
          "The guest's local APIC is emulated: without posted interrupts (Intel) or AVIC (AMD), "
          "timers and interrupts between its vCPUs leave it."},
    Cause{"", "msr_write", "TSC_DEADLINE",
          "The guest sets its APIC timer by this MSR at each tick or sleep. A kernel without a "
          "periodic tick, or fewer short timers, sets it less often."},
    Cause{"", "msr_", "", "The guest uses an MSR that Xen emulates."},
    Cause{"", "npf", "apic",
          "The guest reaches its local APIC by memory (TPR, EOI). In x2APIC mode, or with AVIC or "
          "APICv, this needs no exit."},
    Cause{"", "npf", "populate_on_demand",
          "The guest touches memory that it has not been given yet: memory is below maxmem, and "
          "pages come at their first use (populate on demand)."},
    Cause{"", "npf", "logdirty", "The guest's memory is being copied: a live migration or a save."},
    Cause{"", "npf", "mmio", "A device is emulated by memory accesses. A PV driver avoids them."},
    Cause{"", "npf", "", "The p2m had no usable entry for the guest's page."},
    Cause{"", "mmio_", "", "A device is emulated by memory accesses. A PV driver avoids them."},
    Cause{"", "io_", "",
          "Each access to the port of an emulated device leaves the guest. A PV driver avoids it, "
          "or the program that polls the port can do so less often."},
    Cause{
        "", "hypercall", "vcpu_op",
        "The guest sets its timer by a hypercall at each tick or sleep; fewer short timers set it "
        "less often."},
    Cause{"", "hypercall", "grant_table_op", "Back ends copy or map pages of other domains."},
    Cause{"", "hypercall", "sched_op", "The guest yields or blocks by hypercalls."},
    Cause{"", "hypercall", "", "The guest calls Xen."},
    Cause{"", "page_fault", "", "The guest runs on shadow page tables. With hap=1 it needs none."},
    Cause{"", "shadow", "", "The guest runs on shadow page tables. With hap=1 it needs none."},
    Cause{"", "cr_", "",
          "The guest changes control registers that Xen follows, often because of shadow page "
          "tables (hap=0)."},
    Cause{"", "invlpg", "", "The guest runs on shadow page tables. With hap=1 it needs none."},
    Cause{"", "realmode", "", "Xen emulates real mode: firmware or a boot loader runs."},
    Cause{"", "nmi", "", "These NMIs are samples of this profiler: record at a lower rate."},
    Cause{"", "intr", "", "Interrupts of the host arrive on the pCPU where the guest runs."},
    Cause{"RDTSC", "", "", "Xen emulates the TSC of this guest (tsc_mode)."},
    Cause{"PAUSE", "", "", "A vCPU spins, mostly on a lock whose holder does not run."},
    Cause{"EPT_VIOLATION", "", "", "The p2m had no usable entry for the guest's page."},
    Cause{"NPF", "", "", "The p2m had no usable entry for the guest's page."},
    Cause{"APIC_ACCESS", "", "", "The guest reaches its local APIC by memory (TPR, EOI)."},
    Cause{"TPR", "", "", "The guest changes the priority of its local APIC (TPR) often."},
    Cause{"CR8", "", "", "The guest changes the priority of its local APIC (TPR) often."},
    Cause{"WBINVD", "", "", "The guest writes back its caches, as a device of its asks for it."},
};

bool Fits(const Cause& cause, const ExitNames& exit) {
  // "io_" is for io_read and io_write.
  return exit.reason.find(cause.reason) != std::string_view::npos &&
         exit.kind.starts_with(cause.kind) &&
         exit.number.find(cause.number) != std::string_view::npos;
}

}  // namespace

std::string_view UsualCause(const ExitNames& exit) {
  const auto* const cause =
      std::ranges::find_if(kCauses, [&exit](const Cause& one) { return Fits(one, exit); });
  return cause == kCauses.end() ? std::string_view() : cause->text;
}

}  // namespace xenoscope::findings
