#include "sampler/vcpu/vcpu_calls.h"

#include "base/error.h"
#include "sampler/xen/privcmd.h"

#ifdef XENOSCOPE_HAVE_XEN

extern "C" {  // Xen's headers lack it
#include <xen/xen.h>
}

#include <array>
#include <cerrno>
#include <utility>

#include "sampler/xen/domctl_handle.h"

namespace xenoscope::sampler {
namespace {

// By their DWARF numbers.
UserRegisters RegistersOf(const cpu_user_regs_t& from) {
  return {from.rax, from.rdx, from.rcx, from.rbx, from.rsi, from.rdi, from.rbp, from.rsp, from.r8,
          from.r9,  from.r10, from.r11, from.r12, from.r13, from.r14, from.r15, from.rip};
}

class XenVcpuCalls final : public VcpuCalls {
 public:
  explicit XenVcpuCalls(std::unique_ptr<DomctlHandle> domctl) : domctl_(std::move(domctl)) {}

  absl::Status Ready() {
    context_ = domctl_->Allocate<vcpu_guest_context_t>();
    pcpus_ = domctl_->Allocate<PcpuSet>();
    if (context_ != nullptr && pcpus_ != nullptr) return absl::OkStatus();
    return ErrnoError(errno, "no memory for hypercalls");
  }

  int Domain(DomainId domain, DomainState& state) override {
    const DomctlDomainInfo& found = domctl_->Prepare(DomctlOp::kGetDomainInfo, domain).u.domain;
    const int error = domctl_->Call();
    if (error != 0) return error;
    if (found.domain != domain.value) return -ESRCH;
    state.dying = (found.flags & kDomainDying) != 0;
    state.paused = (found.flags & kDomainPaused) != 0;
    state.shutdown = (found.flags & kDomainShutdown) != 0;
    state.shutdown_reason = static_cast<uint8_t>(found.flags >> kDomainShutdownShift);
    state.online_vcpus = found.online_vcpus;
    state.max_vcpus = found.last_vcpu + 1;  // 0: it has no vCPUs yet
    return 0;
  }

  int State(VcpuRef vcpu, VcpuState& state) override {
    DomctlVcpuInfo& info = domctl_->Prepare(DomctlOp::kGetVcpuInfo, vcpu.domain).u.info;
    info.vcpu = vcpu.vcpu.value;
    const int error = domctl_->Call();
    state.online = info.online != 0;
    state.blocked = info.blocked != 0;
    state.running = info.running != 0;
    state.ran_ns = info.cpu_time;
    return error;
  }

  int Context(VcpuRef vcpu, VcpuContext& context) override {
    domctl_->Prepare(DomctlOp::kGetVcpuContext, vcpu.domain).u.context = {
        .vcpu = vcpu.vcpu.value, .context = XenAddressOf(context_)};
    const int error = domctl_->Call();
    if (error != 0) return error;
    context.address = context_->user_regs.rip;
    // For a PV guest, whose kernel runs in ring 3, Xen sets a flag; for others the ring is the
    // mode.
    constexpr unsigned kRing = 3;
    const bool kernel =
        (context_->flags & VGCF_in_kernel) != 0 || (context_->user_regs.cs & kRing) == 0;
    context.mode = kernel ? Mode::kKernel : Mode::kUser;
    context.stack = context_->user_regs.rsp;
    context.frame = context_->user_regs.rbp;
    context.registers = RegistersOf(context_->user_regs);
    // A 64-bit PV guest has page tables of its own for user mode, which Xen reports here.
    const bool own_tables = !kernel && context_->ctrlreg[1] != 0;
    context.page_tables = context_->ctrlreg[own_tables ? 1 : 3];
    constexpr uint64_t kFiveLevels = 1U << 12;  // CR4.LA57
    context.five_levels = (context_->ctrlreg[4] & kFiveLevels) != 0;
    return 0;
  }

  int Affinity(VcpuRef vcpu, std::vector<uint32_t>& pcpus) override {
    pcpus.clear();
    *pcpus_ = {};
    domctl_->Prepare(DomctlOp::kGetVcpuAffinity, vcpu.domain).u.affinity = {
        .vcpu = vcpu.vcpu.value,
        .flags = kHardAffinity,
        .hard = {.bits = XenAddressOf(pcpus_), .count = kPcpuBits, .padding = 0},
        .soft = {}};
    const int error = domctl_->Call();
    if (error != 0) return error;
    for (uint32_t pcpu = 0; pcpu < kPcpuBits; ++pcpu) {
      if (((*pcpus_)[pcpu / 8] >> pcpu % 8 & 1) != 0) pcpus.push_back(pcpu);
    }
    return 0;
  }

 private:
  static constexpr uint32_t kPcpuBits = 1024;
  using PcpuSet = std::array<uint8_t, kPcpuBits / 8>;

  std::unique_ptr<DomctlHandle> domctl_;
  vcpu_guest_context_t* context_ = nullptr;
  PcpuSet* pcpus_ = nullptr;
};

}  // namespace

absl::StatusOr<std::unique_ptr<VcpuCalls>> OpenVcpuCalls() {
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<DomctlHandle> domctl,
                             DomctlHandle::Open("inspect others"));
  auto calls = std::make_unique<XenVcpuCalls>(std::move(domctl));
  XENOSCOPE_RETURN_IF_ERROR(calls->Ready());
  return calls;
}

}  // namespace xenoscope::sampler

#else

namespace xenoscope::sampler {

absl::StatusOr<std::unique_ptr<VcpuCalls>> OpenVcpuCalls() { return BuiltWithoutXen(); }

}  // namespace xenoscope::sampler

#endif
