#include "sampler/vcpu/vcpu_calls.h"

#include "base/error.h"

#ifdef XENOSCOPE_HAVE_XEN

extern "C" {  // Xen's headers lack it
#include <xen/xen.h>
#include <xencall.h>
}

#include <array>
#include <cerrno>
#include <utility>

#include "base/hypercalls.h"
#include "sampler/vcpu/vcpu_abi.h"
#include "sampler/xen/privcmd.h"

namespace xenoscope::sampler {
namespace {

class XenVcpuCalls final : public VcpuCalls {
 public:
  explicit XenVcpuCalls(xencall_handle* calls) : calls_(calls) {}
  XenVcpuCalls(const XenVcpuCalls&) = delete;
  XenVcpuCalls& operator=(const XenVcpuCalls&) = delete;
  ~XenVcpuCalls() override {
    if (op_ != nullptr) xencall_free_buffer(calls_, op_);
    if (context_ != nullptr) xencall_free_buffer(calls_, context_);
    if (pcpus_ != nullptr) xencall_free_buffer(calls_, pcpus_);
    xencall_close(calls_);
  }

  absl::Status Ready() {
    op_ = static_cast<Domctl*>(xencall_alloc_buffer(calls_, sizeof(Domctl)));
    context_ = static_cast<vcpu_guest_context_t*>(
        xencall_alloc_buffer(calls_, sizeof(vcpu_guest_context_t)));
    pcpus_ = static_cast<PcpuSet*>(xencall_alloc_buffer(calls_, sizeof(PcpuSet)));
    if (op_ == nullptr || context_ == nullptr || pcpus_ == nullptr)
      return ErrnoError(errno, "no memory for hypercalls");
    // Xen checks the version before anything else, and refuses all but its own.
    for (version_ = kFirstDomctlVersion; version_ <= kLastDomctlVersion; ++version_) {
      Prepare(DomctlOp::kGetDomainInfo, kDom0);
      const int error = Call();
      if (error == -EACCES) continue;
      if (error == -EPERM) return PermissionError("Xen does not let this domain inspect others");
      return error == 0 ? absl::OkStatus() : ErrnoError(-error, "Xen does not list its domains");
    }
    return UnimplementedError("this Xen's domctl version is above {:#x}: use a newer xenoscope",
                              kLastDomctlVersion);
  }

  int Domain(DomainId domain, DomainState& state) override {
    Prepare(DomctlOp::kGetDomainInfo, domain);
    const int error = Call();
    if (error != 0) return error;
    const DomctlDomainInfo& found = op_->u.domain;
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
    Prepare(DomctlOp::kGetVcpuInfo, vcpu.domain);
    op_->u.info.vcpu = vcpu.vcpu.value;
    const int error = Call();
    state.online = op_->u.info.online != 0;
    state.blocked = op_->u.info.blocked != 0;
    state.running = op_->u.info.running != 0;
    state.ran_ns = op_->u.info.cpu_time;
    return error;
  }

  int Context(VcpuRef vcpu, VcpuContext& context) override {
    Prepare(DomctlOp::kGetVcpuContext, vcpu.domain);
    op_->u.context.vcpu = vcpu.vcpu.value;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the hypercall's ABI
    op_->u.context.context = reinterpret_cast<uint64_t>(context_);
    const int error = Call();
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
    // A 64-bit PV guest has page tables of its own for user mode, which Xen reports here.
    const bool own_tables = !kernel && context_->ctrlreg[1] != 0;
    context.page_tables = context_->ctrlreg[own_tables ? 1 : 3];
    constexpr uint64_t kFiveLevels = 1U << 12;  // CR4.LA57
    context.five_levels = (context_->ctrlreg[4] & kFiveLevels) != 0;
    return 0;
  }

  int Affinity(VcpuRef vcpu, std::vector<uint32_t>& pcpus) override {
    pcpus.clear();
    Prepare(DomctlOp::kGetVcpuAffinity, vcpu.domain);
    op_->u.affinity.vcpu = vcpu.vcpu.value;
    op_->u.affinity.flags = kHardAffinity;
    *pcpus_ = {};
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the hypercall's ABI
    op_->u.affinity.hard = {reinterpret_cast<uint64_t>(pcpus_), kPcpuBits, 0};
    const int error = Call();
    if (error != 0) return error;
    for (uint32_t pcpu = 0; pcpu < kPcpuBits; ++pcpu) {
      if (((*pcpus_)[pcpu / 8] >> pcpu % 8 & 1) != 0) pcpus.push_back(pcpu);
    }
    return 0;
  }

 private:
  static constexpr uint32_t kPcpuBits = 1024;
  using PcpuSet = std::array<uint8_t, kPcpuBits / 8>;

  void Prepare(DomctlOp op, DomainId domain) {
    *op_ = {};
    op_->op = op;
    op_->version = version_;
    op_->domain = domain.value;
  }

  int Call() {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the hypercall's ABI
    const auto address = reinterpret_cast<uint64_t>(op_);
    return xencall1(calls_, hypercall::kDomctl, address) < 0 ? -errno : 0;
  }

  xencall_handle* calls_;
  Domctl* op_ = nullptr;
  vcpu_guest_context_t* context_ = nullptr;
  PcpuSet* pcpus_ = nullptr;
  uint32_t version_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<VcpuCalls>> OpenVcpuCalls() {
  XENOSCOPE_RETURN_IF_ERROR(CheckPrivcmd());
  xencall_handle* const handle = xencall_open(nullptr, 0);
  if (handle == nullptr) return ErrnoError(errno, "cannot open /dev/xen/privcmd");
  auto calls = std::make_unique<XenVcpuCalls>(handle);
  XENOSCOPE_RETURN_IF_ERROR(calls->Ready());
  return calls;
}

}  // namespace xenoscope::sampler

#else

namespace xenoscope::sampler {

absl::StatusOr<std::unique_ptr<VcpuCalls>> OpenVcpuCalls() {
  return UnimplementedError(
      "this xenoscope was built without Xen's libraries: install libxen-dev and build again");
}

}  // namespace xenoscope::sampler

#endif
