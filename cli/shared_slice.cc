#include "cli/shared_slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/error.h"
#include "cli/domain_names.h"
#include "cli/output.h"
#include "profile/event_choice.h"
#include "profile/recorded_samples.h"
#include "recording/sample.h"
#include "store/bounded_text.h"
#include "store/slice_bytes.h"

namespace xenoscope::cli {

absl::StatusOr<recording::DomainInfo> FindSharedDomain(const recording::RecordingInfo& info,
                                                       const std::string& text) {
  XENOSCOPE_ASSIGN_OR_RETURN(const DomainId id, ChooseDomain(&info, text));
  if (id == kDom0) {
    return InvalidError("--share {}: dom0 may see the whole recording; name a guest", text);
  }
  const auto found = std::ranges::find(info.domains, id, &recording::DomainInfo::id);
  if (found != info.domains.end()) return *found;
  return NotFoundError("--share: there is no domain {} in the recording", text);
}

absl::StatusOr<std::string> SharedEvent(const recording::Recording& recording, DomainId domain) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<recording::EventInfo> events,
                             profile::ReadEvents(recording));
  profile::SampleSelection all;
  all.events.resize(events.size());
  std::iota(all.events.begin(), all.events.end(), uint16_t{0});
  XENOSCOPE_ASSIGN_OR_RETURN(profile::RecordedSamples samples,
                             profile::RecordedSamples::Open(recording, all, /*processes=*/nullptr));
  std::vector<uint64_t> counts(events.size());
  while (const recording::Sample* const sample = samples.Next()) {
    const bool is_own = sample->vcpu.domain == domain && sample->event < counts.size();
    if (is_own && !events[sample->event].waiting) ++counts[sample->event];
  }
  const auto most = std::ranges::max_element(counts);
  if (most == counts.end() || *most == 0) return "";
  return profile::EventSpelling(events, {static_cast<uint16_t>(most - counts.begin())});
}

std::string SharedLabel(DomainId domain) { return fmt::format("d{}", domain.value); }

store::KeyedSlice OwnPartOf(const store::KeyedSlice& whole, const recording::DomainInfo& domain) {
  store::Owner owner{SharedLabel(domain.id), {}};
  owner.names[SharedLabel(kDom0)] = "Domain-0";
  owner.names[SharedLabel(kIdleDomain)] = "idle";
  if (!domain.name.empty()) owner.names[owner.domain] = store::BoundedName(domain.name);
  return store::TakeOwnPart(whole.slice, whole.dictionary, owner);
}

absl::Status WriteSlice(const std::string& url, const store::KeyedSlice& slice) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes, store::ToBytes(slice));
  return WriteFile(url.substr(kSliceScheme.size()), AsText(bytes));
}

}  // namespace xenoscope::cli
