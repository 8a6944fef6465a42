#include "correlate/placing/unsampled_switches.h"

namespace xenoscope::correlate {

void UnsampledSwitches::NoteFirstSample(DomainId domain) {
  sampled_[domain.value] = true;
  const auto found = unsampled_.find(domain);
  if (found == unsampled_.end()) return;
  Flush(found->second, ContextKind::kSwitch);
  unsampled_.erase(found);
}

void UnsampledSwitches::Finish() {
  for (const auto& [domain, sums] : unsampled_) Flush(sums, ContextKind::kUnsampledSwitch);
  unsampled_.clear();
}

void UnsampledSwitches::Flush(const Sums& sums, ContextKind kind) {
  for (const auto& [place, cycles] : sums) {
    auto [vcpu, context] = place;
    context.kind = kind;
    observer_.OnTraced(vcpu, context, {cycles});
  }
}

}  // namespace xenoscope::correlate
