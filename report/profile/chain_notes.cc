#include "report/profile/chain_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <map>

#include "base/ids.h"

namespace xenoscope::report {
namespace {

using recording::DomainInfo;
using recording::DomainType;
using recording::StreamInfo;

constexpr uint64_t kMinSamples = 50;  // fewer samples may all be in outermost functions
constexpr size_t kMaxNamed = 3;       // domains of a note; of more the number is given

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
  // Index: whether the domain is PVH or HVM.
  std::array<std::vector<std::string>, 2> names;
  std::array<uint64_t, 2> samples{};
  for (const auto& [id, chains] : domains) {
    if (chains.begun == 0 || chains.callers > 0 || chains.samples < kMinSamples) continue;
    const DomainInfo* const domain = info.Domain(id);
    const bool is_hvm =
        domain != nullptr && (domain->type == DomainType::kPvh || domain->type == DomainType::kHvm);
    names.at(size_t{is_hvm}).push_back(DomainLabel(id, info.NameOf(id)));
    samples.at(size_t{is_hvm}) += chains.samples;
  }
  std::vector<std::string> notes;
  for (const bool is_hvm : {false, true}) {
    const std::vector<std::string>& without = names.at(size_t{is_hvm});
    if (without.empty()) continue;
    notes.push_back(fmt::format(
        "{} samples of {} have no callers: {}. Record with --source vcpu -g or with an agent "
        "(--active).",
        samples.at(size_t{is_hvm}),
        without.size() > kMaxNamed ? fmt::format("{} domains", without.size())
                                   : fmt::format("{}", fmt::join(without, ", ")),
        is_hvm ? "xenoprof follows call chains in PV domains only, not in PVH and HVM guests"
               : "Xen follows frame pointers, and the sampled code keeps none"));
  }
  return notes;
}

}  // namespace xenoscope::report
