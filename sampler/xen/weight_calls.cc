#include "sampler/xen/weight_calls.h"

#include <utility>

#include "base/error.h"
#include "sampler/xen/domctl_handle.h"

namespace xenoscope::sampler {
namespace {

class XenWeightCalls final : public WeightCalls {
 public:
  explicit XenWeightCalls(std::unique_ptr<DomctlHandle> domctl) : domctl_(std::move(domctl)) {}

  int Get(WeightScheduler scheduler, DomainId domain, uint16_t& weight) override {
    const DomctlScheduler& known = PrepareGet(scheduler, domain);
    const int error = domctl_->Call();
    if (error == 0) weight = known.weight;
    return error;
  }

  int Set(WeightScheduler scheduler, DomainId domain, uint16_t weight) override {
    // Xen takes weight and cap together.
    DomctlScheduler& known = PrepareGet(scheduler, domain);
    if (const int error = domctl_->Call(); error != 0) return error;
    known.command = kPutScheduling;
    known.weight = weight;
    return domctl_->Call();
  }

 private:
  DomctlScheduler& PrepareGet(WeightScheduler scheduler, DomainId domain) {
    DomctlScheduler& known = domctl_->Prepare(DomctlOp::kScheduler, domain).u.scheduler;
    known.scheduler = static_cast<uint32_t>(scheduler);
    known.command = kGetScheduling;
    return known;
  }

  std::unique_ptr<DomctlHandle> domctl_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<WeightCalls>> OpenWeightCalls() {
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<DomctlHandle> domctl,
                             DomctlHandle::Open("change the scheduling of others"));
  return std::make_unique<XenWeightCalls>(std::move(domctl));
}

}  // namespace xenoscope::sampler
