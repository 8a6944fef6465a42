#include "trace/names.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

#include "base/hypercalls.h"

namespace xenoscope::trace {
namespace {

using std::string_view;

constexpr string_view kVmxReasons[] = {
    "EXCEPTION_NMI",
    "EXTERNAL_INTERRUPT",
    "TRIPLE_FAULT",
    "INIT",
    "SIPI",
    "IO_SMI",
    "OTHER_SMI",
    "PENDING_INTERRUPT",
    "PENDING_VIRT_NMI",
    "TASK_SWITCH",
    "CPUID",  // 10
    "GETSEC",
    "HLT",
    "INVD",
    "INVLPG",
    "RDPMC",
    "RDTSC",
    "RSM",
    "VMCALL",
    "VMCLEAR",
    "VMLAUNCH",  // 20
    "VMPTRLD",
    "VMPTRST",
    "VMREAD",
    "VMRESUME",
    "VMWRITE",
    "VMOFF",
    "VMON",
    "CR_ACCESS",
    "DR_ACCESS",
    "IO_INSTRUCTION",  // 30
    "MSR_READ",
    "MSR_WRITE",
    "INVALID_GUEST_STATE",
    "MSR_LOADING",
    "",
    "MWAIT_INSTRUCTION",
    "MONITOR_TRAP_FLAG",
    "",
    "MONITOR_INSTRUCTION",
    "PAUSE_INSTRUCTION",  // 40
    "MACHINE_CHECK",
    "",
    "TPR_BELOW_THRESHOLD",
    "APIC_ACCESS",
    "EOI_INDUCED",
    "ACCESS_GDTR_OR_IDTR",
    "ACCESS_LDTR_OR_TR",
    "EPT_VIOLATION",
    "EPT_MISCONFIG",
    "INVEPT",  // 50
    "RDTSCP",
    "VMX_PREEMPTION_TIMER_EXPIRED",
    "INVVPID",
    "WBINVD",
    "XSETBV",
    "APIC_WRITE",
    "RDRAND",
    "INVPCID",
    "VMFUNC",
    "ENCLS",  // 60
    "RDSEED",
    "PML_FULL",
    "XSAVES",
    "XRSTORS",
    "PCONFIG",
    "SPP",
    "UMWAIT",
    "TPAUSE",
    "LOADIWKEY",
    "ENCLV",  // 70
    "",
    "ENQCMD_PASID",
    "ENQCMDS_PASID",
    "BUS_LOCK",
    "NOTIFY",
    "SEAMCALL",
    "TDCALL",
    "RDMSRLIST",
    "WRMSRLIST",
};

#define XENOSCOPE_16(prefix, suffix)                                                            \
  "VMEXIT_" prefix "0" suffix, "VMEXIT_" prefix "1" suffix, "VMEXIT_" prefix "2" suffix,        \
      "VMEXIT_" prefix "3" suffix, "VMEXIT_" prefix "4" suffix, "VMEXIT_" prefix "5" suffix,    \
      "VMEXIT_" prefix "6" suffix, "VMEXIT_" prefix "7" suffix, "VMEXIT_" prefix "8" suffix,    \
      "VMEXIT_" prefix "9" suffix, "VMEXIT_" prefix "10" suffix, "VMEXIT_" prefix "11" suffix,  \
      "VMEXIT_" prefix "12" suffix, "VMEXIT_" prefix "13" suffix, "VMEXIT_" prefix "14" suffix, \
      "VMEXIT_" prefix "15" suffix

// NOLINTBEGIN(bugprone-suspicious-missing-comma): XENOSCOPE_16 joins literals
constexpr string_view kSvmReasons[] = {
    XENOSCOPE_16("CR", "_READ"),
    XENOSCOPE_16("CR", "_WRITE"),
    XENOSCOPE_16("DR", "_READ"),
    XENOSCOPE_16("DR", "_WRITE"),
    "VMEXIT_EXCEPTION_DE",  // 0x40
    "VMEXIT_EXCEPTION_DB",
    "VMEXIT_EXCEPTION_NMI",
    "VMEXIT_EXCEPTION_BP",
    "VMEXIT_EXCEPTION_OF",
    "VMEXIT_EXCEPTION_BR",
    "VMEXIT_EXCEPTION_UD",
    "VMEXIT_EXCEPTION_NM",
    "VMEXIT_EXCEPTION_DF",
    "VMEXIT_EXCEPTION_09",
    "VMEXIT_EXCEPTION_TS",
    "VMEXIT_EXCEPTION_NP",
    "VMEXIT_EXCEPTION_SS",
    "VMEXIT_EXCEPTION_GP",
    "VMEXIT_EXCEPTION_PF",
    "VMEXIT_EXCEPTION_15",
    "VMEXIT_EXCEPTION_MF",  // 0x50
    "VMEXIT_EXCEPTION_AC",
    "VMEXIT_EXCEPTION_MC",
    "VMEXIT_EXCEPTION_XF",
    "VMEXIT_EXCEPTION_20",
    "VMEXIT_EXCEPTION_21",
    "VMEXIT_EXCEPTION_22",
    "VMEXIT_EXCEPTION_23",
    "VMEXIT_EXCEPTION_24",
    "VMEXIT_EXCEPTION_25",
    "VMEXIT_EXCEPTION_26",
    "VMEXIT_EXCEPTION_27",
    "VMEXIT_EXCEPTION_28",
    "VMEXIT_EXCEPTION_29",
    "VMEXIT_EXCEPTION_30",
    "VMEXIT_EXCEPTION_31",
    "VMEXIT_INTR",  // 0x60
    "VMEXIT_NMI",
    "VMEXIT_SMI",
    "VMEXIT_INIT",
    "VMEXIT_VINTR",
    "VMEXIT_CR0_SEL_WRITE",
    "VMEXIT_IDTR_READ",
    "VMEXIT_GDTR_READ",
    "VMEXIT_LDTR_READ",
    "VMEXIT_TR_READ",
    "VMEXIT_IDTR_WRITE",
    "VMEXIT_GDTR_WRITE",
    "VMEXIT_LDTR_WRITE",
    "VMEXIT_TR_WRITE",
    "VMEXIT_RDTSC",
    "VMEXIT_RDPMC",
    "VMEXIT_PUSHF",  // 0x70
    "VMEXIT_POPF",
    "VMEXIT_CPUID",
    "VMEXIT_RSM",
    "VMEXIT_IRET",
    "VMEXIT_SWINT",
    "VMEXIT_INVD",
    "VMEXIT_PAUSE",
    "VMEXIT_HLT",
    "VMEXIT_INVLPG",
    "VMEXIT_INVLPGA",
    "VMEXIT_IOIO",
    "VMEXIT_MSR",
    "VMEXIT_TASK_SWITCH",
    "VMEXIT_FERR_FREEZE",
    "VMEXIT_SHUTDOWN",
    "VMEXIT_VMRUN",  // 0x80
    "VMEXIT_VMMCALL",
    "VMEXIT_VMLOAD",
    "VMEXIT_VMSAVE",
    "VMEXIT_STGI",
    "VMEXIT_CLGI",
    "VMEXIT_SKINIT",
    "VMEXIT_RDTSCP",
    "VMEXIT_ICEBP",
    "VMEXIT_WBINVD",
    "VMEXIT_MONITOR",
    "VMEXIT_MWAIT",
    "VMEXIT_MWAIT_CONDITIONAL",
    "VMEXIT_XSETBV",
    "VMEXIT_RDPRU",
    "VMEXIT_EFER_WRITE_TRAP",
    XENOSCOPE_16("CR", "_WRITE_TRAP"),  // 0x90
    "VMEXIT_INVLPGB",                   // 0xa0
    "VMEXIT_INVLPGB_ILLEGAL",
    "VMEXIT_INVPCID",
    "VMEXIT_MCOMMIT",
    "VMEXIT_TLBSYNC",
    "VMEXIT_BUS_LOCK",
    "VMEXIT_IDLE_HLT",
};
// NOLINTEND(bugprone-suspicious-missing-comma)
#undef XENOSCOPE_16
static_assert(std::size(kSvmReasons) == 0xa7);

constexpr string_view kSvmPagingReasons[] = {"VMEXIT_NPF", "VMEXIT_AVIC_INCOMPLETE_IPI",
                                             "VMEXIT_AVIC_NOACCEL", "VMEXIT_VMGEXIT"};

constexpr string_view kHypercalls[] = {
    "set_trap_table",
    "mmu_update",
    "set_gdt",
    "stack_switch",
    "set_callbacks",
    "fpu_taskswitch",
    "sched_op(compat)",
    "platform_op",
    "set_debugreg",
    "get_debugreg",
    "update_descriptor",  // 10
    "",
    "memory_op",
    "multicall",
    "update_va_mapping",
    "set_timer_op",
    "evtchn_op(compat)",
    "xen_version",
    "console_io",
    "physdev_op(compat)",
    "grant_table_op",  // 20
    "vm_assist",
    "update_va_mapping_otherdomain",
    "iret",
    "vcpu_op",
    "set_segment_base",
    "mmuext_op",
    "acm_op",
    "nmi_op",
    "sched_op",
    "callback_op",  // 30
    "xenoprof_op",
    "evtchn_op",
    "physdev_op",
    "hvm_op",
    "sysctl",
    "domctl",
    "kexec_op",
    "tmem_op",
    "argo_op",
    "xenpmu_op",  // 40
    "dm_op",
    "hypfs_op",
    "",
    "",
    "",
    "",
    "",
    "mca",  // 48: arch_0
    "arch_1",
    "arch_2",
    "arch_3",
    "arch_4",
    "arch_5",
    "arch_6",
    "arch_7",
};
static_assert(std::size(kHypercalls) == 56);

// xen/include/public/sched.h, vcpu.h, grant_table.h (4.22).
constexpr string_view kSchedOps[] = {"yield",    "block",           "shutdown",
                                     "poll",     "remote_shutdown", "shutdown_code",
                                     "watchdog", "pin_override"};
constexpr string_view kVcpuOps[] = {"initialise",
                                    "up",
                                    "down",
                                    "is_up",
                                    "get_runstate_info",
                                    "register_runstate_memory_area",
                                    "set_periodic_timer",
                                    "stop_periodic_timer",
                                    "set_singleshot_timer",
                                    "stop_singleshot_timer",
                                    "register_vcpu_info",
                                    "send_nmi",
                                    "get_physid",
                                    "register_vcpu_time_memory_area",
                                    "register_runstate_phys_area",
                                    "register_vcpu_time_phys_area"};
constexpr string_view kGrantOps[] = {
    "map_grant_ref", "unmap_grant_ref", "setup_table",       "dump_table",  "transfer",
    "copy",          "query_size",      "unmap_and_replace", "set_version", "get_status_frames",
    "get_version",   "swap_grant_ref",  "cache_flush"};

constexpr string_view kTraps[] = {"divide_error",
                                  "debug",
                                  "nmi",
                                  "int3",
                                  "overflow",
                                  "bounds",
                                  "invalid_op",
                                  "no_device",
                                  "double_fault",
                                  "copro_seg",
                                  "invalid_tss",
                                  "no_segment",
                                  "stack_error",
                                  "gp_fault",
                                  "page_fault",
                                  "spurious_int",
                                  "copro_error",
                                  "alignment_check",
                                  "machine_check",
                                  "simd_error",
                                  "virtualisation",
                                  "control_protect",
                                  "",
                                  "",
                                  "",
                                  "",
                                  "",
                                  "",
                                  "hypervisor_inject",
                                  "vmm_communication",
                                  "security",
                                  ""};
static_assert(std::size(kTraps) == 32);

struct Named {
  uint32_t number;
  string_view name;
};

// MSRs, by number: xen/arch/x86/include/asm/msr-index.h (4.22).
constexpr Named kMsrs[] = {
    {0x10, "TSC"},
    {0x17, "PLATFORM_ID"},
    {0x1b, "APIC_BASE"},
    {0x3a, "FEATURE_CONTROL"},
    {0x3b, "TSC_ADJUST"},
    {0x48, "SPEC_CTRL"},
    {0x49, "PRED_CMD"},
    {0x79, "UCODE_WRITE"},
    {0x8b, "UCODE_REV"},
    {0xc1, "PERFCTR0"},
    {0xc2, "PERFCTR1"},
    {0xce, "PLATFORM_INFO"},
    {0xcf, "CORE_CAPABILITIES"},
    {0xe7, "MPERF"},
    {0xe8, "APERF"},
    {0xfe, "MTRRcap"},
    {0x10a, "ARCH_CAPABILITIES"},
    {0x10b, "FLUSH_CMD"},
    {0x122, "TSX_CTRL"},
    {0x140, "MISC_FEATURES_ENABLES"},
    {0x174, "SYSENTER_CS"},
    {0x175, "SYSENTER_ESP"},
    {0x176, "SYSENTER_EIP"},
    {0x179, "MCG_CAP"},
    {0x17a, "MCG_STATUS"},
    {0x17b, "MCG_CTL"},
    {0x186, "EVNTSEL0"},
    {0x187, "EVNTSEL1"},
    {0x198, "PERF_STATUS"},
    {0x199, "PERF_CTL"},
    {0x19c, "THERM_STATUS"},
    {0x1a0, "MISC_ENABLE"},
    {0x1b0, "ENERGY_PERF_BIAS"},
    {0x1d9, "DEBUGCTL"},
    {0x277, "PAT"},
    {0x2ff, "MTRRdefType"},
    {0x309, "FIXED_CTR0"},
    {0x30a, "FIXED_CTR1"},
    {0x30b, "FIXED_CTR2"},
    {0x345, "PERF_CAPABILITIES"},
    {0x38d, "FIXED_CTR_CTRL"},
    {0x38e, "PERF_GLOBAL_STATUS"},
    {0x38f, "PERF_GLOBAL_CTRL"},
    {0x390, "PERF_GLOBAL_OVF_CTRL"},
    {0x6e0, "TSC_DEADLINE"},
    {0xda0, "XSS"},
    {0xc0000080, "EFER"},
    {0xc0000081, "STAR"},
    {0xc0000082, "LSTAR"},
    {0xc0000083, "CSTAR"},
    {0xc0000084, "SYSCALL_MASK"},
    {0xc0000100, "FS_BASE"},
    {0xc0000101, "GS_BASE"},
    {0xc0000102, "SHADOW_GS_BASE"},
    {0xc0000103, "TSC_AUX"},
    {0xc0000104, "AMD64_TSC_RATIO"},
    {0xc0010000, "K7_EVNTSEL0"},
    {0xc0010001, "K7_EVNTSEL1"},
    {0xc0010002, "K7_EVNTSEL2"},
    {0xc0010003, "K7_EVNTSEL3"},
    {0xc0010004, "K7_PERFCTR0"},
    {0xc0010005, "K7_PERFCTR1"},
    {0xc0010006, "K7_PERFCTR2"},
    {0xc0010007, "K7_PERFCTR3"},
    {0xc0010010, "K8_SYSCFG"},
    {0xc0010015, "K8_HWCR"},
    {0xc001001f, "AMD64_NB_CFG"},
    {0xc0010055, "K8_ENABLE_C1E"},
    {0xc0010114, "K8_VM_CR"},
    {0xc0010117, "K8_VM_HSAVE_PA"},
    {0xc0010140, "AMD_OSVW_ID_LENGTH"},
    {0xc0010141, "AMD_OSVW_STATUS"},
    {0xc001011f, "VIRT_SPEC_CTRL"},
    {0xc0011020, "AMD64_LS_CFG"},
    {0xc0011022, "AMD64_DC_CFG"},
    {0xc0011029, "AMD64_DE_CFG"},
};

// x2APIC registers, MSRs 0x800 to 0x83f, by the register's number.
constexpr Named kX2ApicRegisters[] = {
    {0x02, "X2APIC_ID"},    {0x03, "X2APIC_VERSION"}, {0x08, "X2APIC_TPR"},
    {0x0a, "X2APIC_PPR"},   {0x0b, "X2APIC_EOI"},     {0x0d, "X2APIC_LDR"},
    {0x0f, "X2APIC_SPIV"},  {0x28, "X2APIC_ESR"},     {0x30, "X2APIC_ICR"},
    {0x32, "X2APIC_LVTT"},  {0x33, "X2APIC_LVTTHMR"}, {0x34, "X2APIC_LVTPC"},
    {0x35, "X2APIC_LVT0"},  {0x36, "X2APIC_LVT1"},    {0x37, "X2APIC_LVTERR"},
    {0x38, "X2APIC_TMICT"}, {0x39, "X2APIC_TMCCT"},   {0x3e, "X2APIC_TDCR"},
    {0x3f, "X2APIC_SELF"}};

constexpr string_view kInterruptSources[] = {"none", "pic", "lapic", "nmi", "mce", "vector"};

constexpr string_view kP2mTypes[] = {
    "ram_rw",       "invalid",        "ram_logdirty",       "ram_ro",
    "mmio_dm",      "mmio_direct",    "populate_on_demand", "grant_map_rw",
    "grant_map_ro", "ram_paging_out", "ram_paged",          "ram_paging_in",
    "ram_shared",   "ram_broken",     "map_foreign",        "ioreq_server"};

constexpr string_view kShadowFlags[] = {"set_ad",
                                        "set_a",
                                        "l1_get_ref",
                                        "l1_put_ref",
                                        "l2_propagate",
                                        "set_changed",
                                        "set_flush",
                                        "set_error",
                                        "demote",
                                        "promote",
                                        "wrmap",  // 10
                                        "wrmap_guess_found",
                                        "wrmap_brute_force",
                                        "early_unshadow",
                                        "2nd_pt_written",
                                        "last_failed",
                                        "full_pt",
                                        "prealloc_unhook",
                                        "unsync",
                                        "oos_fixup_add",
                                        "oos_fixup_evict"};

constexpr string_view kShutdowns[] = {"poweroff", "reboot",   "suspend",
                                      "crash",    "watchdog", "soft_reset"};

template <size_t N>
string_view At(const string_view (&names)[N], uint64_t number) {
  return number < N ? names[number] : string_view();
}

template <size_t N>
string_view Find(const Named (&names)[N], uint32_t number) {
  const auto* found = std::find_if(std::begin(names), std::end(names),
                                   [number](const Named& named) { return named.number == number; });
  return found == std::end(names) ? string_view() : found->name;
}

}  // namespace

string_view ToString(Vendor vendor) {
  switch (vendor) {
    case Vendor::kVmx:
      return "vmx";
    case Vendor::kSvm:
      return "svm";
    case Vendor::kUnknown:
      break;
  }
  return "unknown";
}

string_view ExitReasonName(Vendor vendor, uint32_t reason) {
  switch (vendor) {
    case Vendor::kVmx:
      return At(kVmxReasons, reason & 0xffff);
    case Vendor::kSvm:
      if (reason >= kSvmExitNpf && reason != 0xffffffff) {
        return At(kSvmPagingReasons, reason - kSvmExitNpf);
      }
      return reason == 0xffffffff ? "VMEXIT_INVALID" : At(kSvmReasons, reason);
    case Vendor::kUnknown:
      break;
  }
  return {};
}

string_view HypercallName(uint32_t op) { return At(kHypercalls, op); }

string_view HypercallArgumentName(uint32_t op, uint32_t arg, uint64_t value) {
  constexpr uint64_t kPreempted = 0x80000000;  // MMU_UPDATE_PREEMPTED
  if (op == hypercall::kMmuUpdate || op == hypercall::kMmuextOp) {
    return arg == 1 && (value & kPreempted) != 0 ? "preempted" : string_view();
  }
  if (arg != 0) return {};
  switch (op) {
    case hypercall::kSchedOp:
      return At(kSchedOps, value);
    case hypercall::kVcpuOp:
      return At(kVcpuOps, value);
    case hypercall::kGrantTableOp:
      return At(kGrantOps, value);
    default:
      return {};
  }
}

string_view InterruptSourceName(uint32_t source) { return At(kInterruptSources, source); }

string_view P2mTypeName(uint32_t type) { return At(kP2mTypes, type); }

string_view ShadowFlagName(uint32_t bit) { return At(kShadowFlags, bit); }

string_view TrapName(uint32_t vector) { return At(kTraps, vector); }

string_view MsrName(uint32_t msr) {
  return msr >> 6 == 0x800 >> 6 ? Find(kX2ApicRegisters, msr & 0x3f) : Find(kMsrs, msr);
}

string_view ShutdownName(uint32_t reason) { return At(kShutdowns, reason); }

}  // namespace xenoscope::trace
