#include "report/profile/chain_notes.h"

#include <fmt/format.h>

#include <map>

#include "base/ids.h"

namespace xenoscope::report {
namespace {

using recording::DomainInfo;
using recording::DomainType;
using recording::StreamInfo;

constexpr uint64_t kMinSamples = 50;  // fewer samples may all have been where nobody had called

struct Chains {
  uint64_t samples = 0;
  uint64_t begun = 0;
  uint64_t callers = 0;
};

}  // namespace

std::vector<std::string> ChainNotes(const recording::RecordingInfo& info) {
  std::map<DomainId, Chains> domains;
  for (const StreamInfo& stream : info.streams) {
    if (stream.source != "xenoprof") continue;
    Chains& chains = domains[stream.vcpu.domain];
    chains.samples += stream.kept;
    chains.begun += stream.escapes;
    chains.callers += stream.callers;
  }
  std::vector<std::string> notes;
  for (const auto& [id, chains] : domains) {
    if (chains.begun == 0 || chains.callers > 0 || chains.samples < kMinSamples) continue;
    const DomainInfo* const domain = info.Domain(id);
    const bool is_hvm =
        domain != nullptr && (domain->type == DomainType::kPvh || domain->type == DomainType::kHvm);
    notes.push_back(fmt::format(
        "{} samples of {} have no callers: {}; --source vcpu -g or an agent (--active) may find "
        "them",
        chains.samples, DomainLabel(id, info.NameOf(id)),
        is_hvm ? "xenoprof has call chains of PV domains only, not of PVH and HVM guests"
               : "Xen follows frame pointers, and what was sampled there keeps none"));
  }
  return notes;
}

}  // namespace xenoscope::report
