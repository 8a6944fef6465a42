#include "correlate/profile_estimate.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/error.h"

namespace xenoscope::correlate {
namespace {

// Estimates the size of transitions, and takes it from the time of guests (method.md §4.3).
void MoveTransitions(ProfileSums& sums) {
  Strata& strata = sums.strata;
  absl::btree_map<VcpuRef, VcpuModes> vcpus;
  for (const Stratum& stratum : strata.all) {
    if (!stratum.has_both_modes) continue;
    VcpuModes& vcpu = vcpus[stratum.vcpu];
    vcpu.cycles += stratum.size;
    if (stratum.context.kind == ContextKind::kGuest) {
      vcpu.stays += stratum.stays;
    } else {
      vcpu.xen_cycles += stratum.size;
    }
  }
  for (auto& [ref, vcpu] : vcpus) {
    const auto modes = sums.modes.find(ref);
    if (modes != sums.modes.end()) vcpu.samples = modes->second;
    const auto median = sums.median_stays.find(ref);
    if (median != sums.median_stays.end()) vcpu.median_stay = median->second;
  }
  strata.transitions = TransitionCosts(vcpus);
  for (Stratum& stratum : strata.all) {
    if (stratum.context.kind != ContextKind::kTransition || stratum.stays == 0) continue;
    Stratum& guest = strata.all[stratum.guest];
    stratum.size = std::min(guest.size, strata.transitions.CostOf(stratum.vcpu) * stratum.stays);
    guest.size -= stratum.size;
  }
}

// Gives switches without a sample back to the time of their PV vCPU: samples of guests alone say
// nothing of Xen, of few samples none may be there, and of switches from domains that are not
// sampled there are none. What an HVM vCPU runs before its first exit is in the same context, and
// knows nothing of switches.
void ReturnUnsampledSwitches(std::vector<Stratum>& strata) {
  using Key = std::tuple<uint32_t, VcpuRef, Context>;
  absl::flat_hash_set<std::pair<uint32_t, VcpuRef>> hvm;
  for (const Stratum& stratum : strata) {
    if (stratum.context.kind == ContextKind::kGuest) hvm.emplace(stratum.host, stratum.vcpu);
  }
  absl::flat_hash_map<Key, Stratum*> running;
  for (Stratum& stratum : strata) {
    if (stratum.context.kind != ContextKind::kRunning) continue;
    if (hvm.contains({stratum.host, stratum.vcpu})) continue;
    running[{stratum.host, stratum.vcpu, stratum.context}] = &stratum;
  }
  for (Stratum& stratum : strata) {
    const bool is_switch = stratum.context.kind == ContextKind::kSwitch ||
                           stratum.context.kind == ContextKind::kUnsampledSwitch;
    if (!is_switch || stratum.totals.n > 0) continue;
    Context context = stratum.context;
    context.kind = ContextKind::kRunning;
    const auto found = running.find({stratum.host, stratum.vcpu, context});
    if (found != running.end()) found->second->size += std::exchange(stratum.size, 0.0);
  }
}

StratumSizes SizesOf(ProfileSums& sums) {
  ReturnUnsampledSwitches(sums.strata.all);
  MoveTransitions(sums);
  return SizeStrata(sums.strata);
}

}  // namespace

ProfileEstimator::ProfileEstimator(const Options& options, ProfileSums& sums)
    : options_(options), sums_(sums), sizes_(SizesOf(sums)) {}

std::vector<ProfileRow> ProfileEstimator::Estimate(const RowSums& rows, bool exact) const {
  const ShareEstimator estimator(
      sums_.strata, sizes_,
      {.samples = sums_.samples, .is_time = options_.is_time, .with_parts = options_.parts});
  std::vector<std::vector<const Part*>> parts(rows.keys.size());
  for (const Part& part : rows.parts) parts[part.row].push_back(&part);
  std::vector<ProfileRow> out(rows.keys.size());
  for (size_t row = 0; row < out.size(); ++row) {
    estimator.Estimate(parts[row], exact && sizes_.measured, out[row]);
  }
  return out;
}

absl::Status ProfileEstimator::AddTotals(ProfileResult& result) const {
  result.samples = sums_.samples;
  result.cycles = sizes_.cycles;
  result.unsampled_cycles = sizes_.unsampled;
  if (sizes_.measured) result.checks = CheckDomains(sums_.strata.all, sums_.cluster_squares);
  double sum = 0;
  for (const ProfileRow& row : result.rows) sum += row.samples;
  if (std::abs(sum - sums_.samples) > 1e-6 * std::max(sums_.samples, 1.0)) {
    return InternalError("the rows hold {} samples, but {} were attributed", sum, sums_.samples);
  }
  return absl::OkStatus();
}

}  // namespace xenoscope::correlate
