// Names the numbers in records: exit reasons, hypercalls, traps, registers. The names are those
// that xenalyze prints, where it has one; an empty name means that the number has none.
#pragma once

#include <cstdint>
#include <string_view>

namespace xenoscope::trace {

// The processor's virtualisation, which decides what an exit reason means.
enum class Vendor : uint8_t { kUnknown, kVmx, kSvm };

// "vmx", "svm", "unknown".
[[nodiscard]] std::string_view ToString(Vendor vendor);

// "CPUID" (VMX, Intel SDM volume 3 appendix C) or "VMEXIT_CPUID" (SVM, AMD APM volume 2 appendix
// C). On VMX, bit 31 is ignored, which says that the entry failed: VmxEntryFailed.
[[nodiscard]] std::string_view ExitReasonName(Vendor vendor, uint32_t reason);
[[nodiscard]] constexpr bool VmxEntryFailed(uint32_t reason) { return (reason & 0x80000000) != 0; }
// SVM's exit reason of a nested page fault (NPF).
inline constexpr uint32_t kSvmExitNpf = 0x400;

// "mmu_update": xen/include/public/xen.h (4.22, with those of older versions); 48 to 55 are arch_0
// to arch_7, 48 being mca on x86.
[[nodiscard]] std::string_view HypercallName(uint32_t op);
// Names the value of the hypercall's argument with the index `arg`, where that says what the
// hypercall does: "block" for sched_op, "map_grant_ref" for grant_table_op; "preempted" for a batch
// of mmu_update or mmuext_op that goes on where it was interrupted.
[[nodiscard]] std::string_view HypercallArgumentName(uint32_t op, uint32_t arg, uint64_t value);

// "lapic": enum hvm_intsrc, xen/arch/x86/include/asm/hvm/hvm.h (4.17).
[[nodiscard]] std::string_view InterruptSourceName(uint32_t source);
// "ram_rw": p2m_type_t, xen/arch/x86/include/asm/p2m.h (4.17).
[[nodiscard]] std::string_view P2mTypeName(uint32_t type);
// "set_changed": bit `bit` of the flags of a shadow record, TRCE_SFLAG_* in
// xen/arch/x86/mm/shadow/private.h (4.17).
[[nodiscard]] std::string_view ShadowFlagName(uint32_t bit);

// "page_fault": exception vectors 0 to 31.
[[nodiscard]] std::string_view TrapName(uint32_t vector);
// "EFER".
[[nodiscard]] std::string_view MsrName(uint32_t msr);
// "poweroff": xen/include/public/sched.h (4.22).
[[nodiscard]] std::string_view ShutdownName(uint32_t reason);

}  // namespace xenoscope::trace
