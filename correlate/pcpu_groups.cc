#include "correlate/pcpu_groups.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <vector>

#include "base/ids.h"

namespace xenoscope::correlate {
namespace {

// Longer ones are never needed; so many are no overflow.
constexpr Cycles kMaxWindow = Cycles{1} << 50;

// From so many pCPUs on, what is known of them and their vCPUs does not stay in the processor's
// nearest caches while all are read in turns.
constexpr size_t kManyPcpus = 64;

// What has to be in one group: the vCPUs of a domain, or an idle vCPU.
uint64_t KeyOf(VcpuRef vcpu) {
  if (IsIdle(vcpu)) return uint64_t{1} << 32 | vcpu.vcpu.value;
  return vcpu.domain.value;
}

// A trace may say that its records are of the last instants of all time.
Tsc After(Tsc begin, Cycles length) {
  return begin + std::min(length, trace::OrderedStream::kEnd - begin);
}

// Returns a pCPU that stands for the pCPU's group, and shortens the way to it.
uint32_t RootOf(std::vector<uint32_t>& groups, uint32_t pcpu) {
  while (groups[pcpu] != pcpu) pcpu = groups[pcpu] = groups[groups[pcpu]];
  return pcpu;
}

}  // namespace

PcpuGroups::Window PcpuGroups::Next(const trace::OrderedStream& stream, Tsc through) {
  const Tsc begin = stream.next_tsc();
  if (begin < search_from_) return {std::min(through, search_from_), {}};
  const Tsc end = std::min(through, After(begin, length_));
  if (FindGroups(stream, end, end - begin < length_)) {
    as_one_ = 0;
    return {end, groups_};
  }
  // The search was in vain, so that it is made the more rarely.
  if (as_one_ == kMaxWindowsAsOne) length_ = std::min(length_ * 2, kMaxWindow);
  as_one_ = std::clamp(as_one_ * 2, 1U, kMaxWindowsAsOne);
  search_from_ = After(end, (end - begin) * as_one_);
  return {end, {}};
}

bool PcpuGroups::FindGroups(const trace::OrderedStream& stream, Tsc through, bool is_cut) {
  const std::optional<trace::NamedVcpus> named = stream.NamedUpTo(through);
  if (!named) return false;
  Adapt(named->bytes, stream.open_pcpus(), is_cut);
  groups_.resize(stream.pcpu_end());
  std::iota(groups_.begin(), groups_.end(), 0U);
  first_of_.clear();
  const auto join = [this](PcpuId a, PcpuId b) {
    groups_[RootOf(groups_, a.value)] = RootOf(groups_, b.value);
  };
  for (const auto& [by, vcpu] : named->names) {
    const auto [first, is_new] = first_of_.try_emplace(KeyOf(vcpu), by);
    if (!is_new) join(by, first->second);
    if (const VcpuTrack* track = timeline_->Find(vcpu)) join(by, track->pcpu);
  }
  return AreWorthIt(stream.open_pcpus());
}

bool PcpuGroups::AreWorthIt(size_t pcpus) {
  sizes_.assign(groups_.size(), 0);
  for (uint32_t pcpu = 0; pcpu < groups_.size(); ++pcpu) {
    groups_[pcpu] = RootOf(groups_, pcpu);
    ++sizes_[groups_[pcpu]];
  }
  const size_t largest = *std::ranges::max_element(sizes_);
  if (largest > pcpus / 2) return false;
  // pCPUs without records are alone, too.
  const size_t not_alone = groups_.size() - static_cast<size_t>(std::ranges::count(sizes_, 1U));
  return pcpus >= kManyPcpus || not_alone <= pcpus / 2;
}

void PcpuGroups::Adapt(uint64_t bytes, size_t pcpus, bool is_cut) {
  const uint64_t wanted = window_bytes_ * pcpus;
  if (!is_cut && bytes < wanted / 2) length_ = std::min(length_ * 2, kMaxWindow);
  if (bytes > wanted * 2) length_ = std::max(length_ / 2, Cycles{1});
}

}  // namespace xenoscope::correlate
