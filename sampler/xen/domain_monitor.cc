#include "sampler/xen/domain_monitor.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace xenoscope::sampler {

using recording::DomainChange;
using recording::DomainInfo;
using recording::RecordingInfo;
using Kind = DomainChange::Kind;

namespace {

// The reason of a guest's shutdown (xen/include/public/sched.h, SHUTDOWN_*).
constexpr uint8_t kShutdownReboot = 1;
constexpr uint8_t kShutdownSuspend = 2;
constexpr uint8_t kShutdownCrash = 3;

Kind ShutdownKind(uint8_t reason) {
  switch (reason) {
    case kShutdownReboot:
      return Kind::kRebooted;
    case kShutdownSuspend:
      return Kind::kSuspended;
    case kShutdownCrash:
      return Kind::kCrashed;
    default:
      return Kind::kPoweredOff;
  }
}

}  // namespace

DomainMonitor::DomainMonitor(DomainDirectory& directory, std::unique_ptr<VcpuCalls> calls,
                             std::function<Tsc()> read_tsc)
    : directory_(directory), calls_(std::move(calls)), read_tsc_(std::move(read_tsc)) {}

std::set<VcpuId> DomainMonitor::OnlineVcpus(DomainId domain, uint32_t vcpus) const {
  std::set<VcpuId> online;
  for (uint32_t i = 0; i < vcpus; ++i) {
    VcpuState state;
    if (calls_->State({domain, VcpuId{i}}, state) == 0 && state.online) online.insert(VcpuId{i});
  }
  return online;
}

std::optional<DomainState> DomainMonitor::StateOf(DomainId domain, bool listed) const {
  DomainState state;
  if (!calls_) return listed ? std::optional(state) : std::nullopt;
  if (calls_->Domain(domain, state) != 0 || state.dying) return std::nullopt;
  return state;
}

bool DomainMonitor::Exists(DomainId domain) const {
  DomainState state;
  return calls_ ? calls_->Domain(domain, state) == 0 : directory_.Ids().contains(domain);
}

void DomainMonitor::Poll(RecordingInfo& info) {
  const std::set<DomainId> listed = directory_.Ids();
  if (listed.empty()) return;  // xenstore does not answer at present
  const Tsc now = read_tsc_();
  const TscRange when{last_poll_.value_or(now), now + 1};
  const bool first = !last_poll_;
  last_poll_ = now;
  if (!first) AddCreatedDomains(info, listed, when);
  for (DomainInfo& domain : info.domains) {
    DomainSnapshot& seen = seen_[domain.id];
    if (seen.gone) continue;
    const std::optional<DomainState> state = StateOf(domain.id, listed.contains(domain.id));
    if (!state) {
      seen.gone = domain.died = true;
      info.changes.push_back({Kind::kDestroyed, domain.id, std::nullopt, when});
      continue;
    }
    const bool vcpus_changed = !seen.state || seen.state->online_vcpus != state->online_vcpus;
    DomainSnapshot next{state, seen.online, false, seen.changes};
    if (calls_ && vcpus_changed) next.online = OnlineVcpus(domain.id, state->max_vcpus);
    if (seen.state) {
      for (const DomainChange& change : Compare(domain.id, seen, next, when)) {
        if (next.changes == kMaxChanges) {
          ++domain.changes_left_out;
        } else {
          ++next.changes;
          info.changes.push_back(change);
        }
      }
    }
    seen = std::move(next);
  }
}

bool DomainMonitor::IsUnknown(const DomainInfo& domain) const {
  const auto readings = name_reads_.find(domain.id);
  return readings != name_reads_.end() && readings->second < kMaxReads && !domain.died &&
         (domain.name.empty() || domain.vcpus == 0 ||
          domain.type == recording::DomainType::kUnknown);
}

void DomainMonitor::AddCreatedDomains(RecordingInfo& info, const std::set<DomainId>& listed,
                                      TscRange when) {
  const auto is_known = [&](DomainId id) {
    const DomainInfo* const domain = info.Domain(id);
    return domain != nullptr && !IsUnknown(*domain);
  };
  if (std::ranges::all_of(listed, is_known)) return;
  absl::StatusOr<std::vector<DomainInfo>> now = directory_.List();
  if (!now.ok()) return;
  for (DomainInfo& domain : *now) {
    if (is_known(domain.id)) continue;
    ++name_reads_[domain.id];
    const auto known = std::ranges::find(info.domains, domain.id, &DomainInfo::id);
    if (known != info.domains.end()) {
      known->name = domain.name;
      known->type = domain.type;
      known->vcpus = domain.vcpus;
      continue;
    }
    info.changes.push_back({Kind::kCreated, domain.id, std::nullopt, when});
    info.domains.push_back(std::move(domain));
  }
}

std::vector<DomainChange> DomainMonitor::Compare(DomainId domain, const DomainSnapshot& before,
                                                 const DomainSnapshot& now, TscRange when) {
  std::vector<DomainChange> changes;
  const auto add = [&](Kind kind, std::optional<VcpuId> vcpu = std::nullopt) {
    changes.push_back({kind, domain, vcpu, when});
  };
  if (now.state->paused != before.state->paused) {
    add(now.state->paused ? Kind::kPaused : Kind::kUnpaused);
  }
  if (now.state->shutdown != before.state->shutdown) {
    add(now.state->shutdown ? ShutdownKind(now.state->shutdown_reason) : Kind::kResumed);
  }
  for (const VcpuId vcpu : now.online) {
    if (!before.online.contains(vcpu)) add(Kind::kVcpuOnline, vcpu);
  }
  for (const VcpuId vcpu : before.online) {
    if (!now.online.contains(vcpu)) add(Kind::kVcpuOffline, vcpu);
  }
  return changes;
}

}  // namespace xenoscope::sampler
