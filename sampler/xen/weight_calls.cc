#include "sampler/xen/weight_calls.h"

#include "base/error.h"

#ifdef XENOSCOPE_HAVE_XEN

extern "C" {  // Xen's headers lack it
#include <xencall.h>
}

#include <cerrno>

#include "base/hypercalls.h"
#include "sampler/vcpu/vcpu_abi.h"
#include "sampler/xen/privcmd.h"

namespace xenoscope::sampler {
namespace {

class XenWeightCalls final : public WeightCalls {
 public:
  explicit XenWeightCalls(xencall_handle* calls) : calls_(calls) {}
  XenWeightCalls(const XenWeightCalls&) = delete;
  XenWeightCalls& operator=(const XenWeightCalls&) = delete;
  ~XenWeightCalls() override {
    if (op_ != nullptr) xencall_free_buffer(calls_, op_);
    xencall_close(calls_);
  }

  absl::Status Ready() {
    op_ = static_cast<Domctl*>(xencall_alloc_buffer(calls_, sizeof(Domctl)));
    if (op_ == nullptr) return ErrnoError(errno, "no memory for hypercalls");
    // Xen checks the version before anything else, and refuses all but its own.
    for (version_ = kFirstDomctlVersion; version_ <= kLastDomctlVersion; ++version_) {
      uint16_t ignored = 0;
      const int error = Get(WeightScheduler::kCredit2, kDom0, ignored);
      if (error == -EACCES) continue;
      if (error == -EPERM) {
        return PermissionError("Xen does not let this domain change the scheduling of others");
      }
      return absl::OkStatus();
    }
    return UnimplementedError("this Xen's domctl version is above {:#x}: use a newer xenoscope",
                              kLastDomctlVersion);
  }

  int Get(WeightScheduler scheduler, DomainId domain, uint16_t& weight) override {
    const int error = Read(scheduler, domain);
    if (error == 0) weight = op_->u.scheduler.weight;
    return error;
  }

  int Set(WeightScheduler scheduler, DomainId domain, uint16_t weight) override {
    // Xen takes weight and cap together.
    const int error = Read(scheduler, domain);
    if (error != 0) return error;
    op_->u.scheduler.command = kPutScheduling;
    op_->u.scheduler.weight = weight;
    return Call();
  }

 private:
  int Read(WeightScheduler scheduler, DomainId domain) {
    *op_ = {};
    op_->op = DomctlOp::kScheduler;
    op_->version = version_;
    op_->domain = domain.value;
    op_->u.scheduler.scheduler = static_cast<uint32_t>(scheduler);
    op_->u.scheduler.command = kGetScheduling;
    return Call();
  }

  int Call() {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the hypercall's ABI
    const auto address = reinterpret_cast<uint64_t>(op_);
    return xencall1(calls_, hypercall::kDomctl, address) < 0 ? -errno : 0;
  }

  xencall_handle* calls_;
  Domctl* op_ = nullptr;
  uint32_t version_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WeightCalls>> OpenWeightCalls() {
  XENOSCOPE_RETURN_IF_ERROR(CheckPrivcmd());
  xencall_handle* const handle = xencall_open(nullptr, 0);
  if (handle == nullptr) return ErrnoError(errno, "cannot open /dev/xen/privcmd");
  auto calls = std::make_unique<XenWeightCalls>(handle);
  XENOSCOPE_RETURN_IF_ERROR(calls->Ready());
  return calls;
}

}  // namespace xenoscope::sampler

#else

namespace xenoscope::sampler {

absl::StatusOr<std::unique_ptr<WeightCalls>> OpenWeightCalls() {
  return UnimplementedError(
      "this xenoscope was built without Xen's libraries: install libxen-dev and build again");
}

}  // namespace xenoscope::sampler

#endif
