#include "sampler/sources.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "sampler/host.h"
#include "sampler/xenoprof_source.h"

namespace xenoscope::sampler {
namespace {

using recording::DomainInfo;
using recording::RecordingInfo;

absl::StatusOr<std::vector<DomainId>> ChoosePassive(const SampleRequest& request,
                                                    const std::vector<DomainInfo>& all) {
  std::vector<DomainId> chosen;
  if (!request.passive) {
    for (const DomainInfo& domain : all) {
      if (domain.id != kDom0) chosen.push_back(domain.id);
    }
    return chosen;
  }
  for (const std::string& name : *request.passive) {
    XENOSCOPE_ASSIGN_OR_RETURN(const DomainId id, FindDomain(all, name));
    if (id == kDom0) {
      return InvalidError("--passive={}: dom0 is always sampled, leave it out", name);
    }
    if (std::ranges::find(chosen, id) == chosen.end()) chosen.push_back(id);
  }
  return chosen;
}

absl::StatusOr<std::unique_ptr<Source>> OpenXenoprof(const SampleRequest& request,
                                                     const RecordingInfo& info,
                                                     std::vector<DomainId> passive,
                                                     const SessionLock& lock) {
  XenoprofRequest xenoprof;
  xenoprof.events = request.events;
  xenoprof.passive = std::move(passive);
  xenoprof.hpet_hz = request.hpet_hz;
  xenoprof.drain_interval = request.drain_interval;
  xenoprof.buffer_samples = request.buffer_samples;
  xenoprof.clock_hz = info.host.clock_hz;
  return XenoprofSource::Open(std::move(xenoprof), lock);
}

// Whether it says that this host cannot do it, and not that the request is wrong.
bool IsOfThisHost(const absl::Status& status) {
  return absl::IsUnimplemented(status) || absl::IsFailedPrecondition(status);
}

}  // namespace

absl::StatusOr<OpenedSources> OpenSources(const SampleRequest& request, const RecordingInfo& info,
                                          const SessionLock& lock) {
  OpenedSources opened;
  XENOSCOPE_ASSIGN_OR_RETURN(std::vector<DomainId> passive, ChoosePassive(request, info.domains));
  absl::StatusOr<std::unique_ptr<Source>> source =
      OpenXenoprof(request, info, std::move(passive), lock);
  if (source.ok()) {
    opened.sources.push_back(*std::move(source));
    if (!request.source) {
      opened.notes.emplace_back("source xenoprof: it samples Xen and all domains in every mode");
    }
  } else if (request.source || !IsOfThisHost(source.status())) {
    return source.status();
  } else {
    opened.notes.push_back(
        fmt::format("source trace: the VM exits in the trace are the samples, "
                    "since {}",
                    Message(source.status())));
  }
  return opened;
}

}  // namespace xenoscope::sampler
