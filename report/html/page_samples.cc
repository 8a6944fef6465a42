#include "report/html/page_samples.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "report/markup.h"

namespace xenoscope::report {

using nlohmann::ordered_json;

PageSamples::Vcpu& PageSamples::VcpuOf(VcpuRef ref) {
  const auto next = static_cast<uint32_t>(vcpus_.size());
  const auto [at, is_new] = index_.try_emplace(ref, next);
  if (is_new) vcpus_.push_back({.ref = ref, .last = {}, .entry = {}, .number = next});
  return vcpus_[at->second];
}

uint32_t PageSamples::TextOf(FunctionId function) {
  const auto [at, is_new] = text_of_function_.try_emplace(function.value);
  if (is_new) at->second = texts_.Intern(Printable(resolver_.Describe(function).name));
  return at->second;
}

void PageSamples::OnPlaced(const correlate::PlacedSample& placed) {
  over_time_.Add(placed);
  Vcpu& vcpu = VcpuOf(placed.vcpu);
  // Samples of one bracket are consecutive.
  if (placed.when.Length() <= 1 || vcpu.last != placed.when) {
    if (entries_.size() >= kMaxSamples) Thin();
    const bool is_kept = vcpu.number % kept_ == 0;
    ++vcpu.number;
    vcpu.last = placed.when;
    vcpu.entry.reset();
    if (is_kept) {
      vcpu.entry = entries_.size();
      entries_.push_back({placed.when, static_cast<uint32_t>(&vcpu - vcpus_.data()), placed.mode(),
                          TextOf(correlate::FunctionOf(placed, resolver_)), 0});
    }
  }
  (vcpu.entry ? entries_[*vcpu.entry].count : left_out_) += placed.count;
}

void PageSamples::Thin() {
  // By vCPU: the number of its next entry, in multiples of kept_.
  std::vector<uint64_t> multiples(vcpus_.size());
  for (size_t i = 0; i < multiples.size(); ++i) multiples[i] = (i + kept_ - 1) / kept_;
  std::erase_if(entries_, [&](const Entry& entry) {
    if (multiples[entry.vcpu]++ % 2 == 0) return false;
    left_out_ += entry.count;
    return true;
  });
  kept_ *= 2;
  for (Vcpu& vcpu : vcpus_) vcpu.entry.reset();
}

void PageSamples::AddTo(ordered_json& timeline, TscRange shown,
                        const std::function<std::optional<uint32_t>(VcpuRef)>& number_of) const {
  std::vector<std::optional<uint32_t>> numbers;
  numbers.reserve(vcpus_.size());
  for (const Vcpu& vcpu : vcpus_) numbers.push_back(number_of(vcpu.ref));
  std::vector<Entry> sorted = entries_;
  std::ranges::stable_sort(sorted, {}, [](const Entry& entry) { return entry.when.begin; });
  ordered_json list = ordered_json::array();
  for (const Entry& entry : sorted) {
    const TscRange part = entry.when.Intersect(shown);
    if (part.Empty() || !numbers[entry.vcpu]) continue;
    list.push_back(*numbers[entry.vcpu]);
    list.push_back(static_cast<int>(entry.mode));
    list.push_back(entry.function);
    list.push_back(part.begin - shown.begin);
    list.push_back(part.Length());
    list.push_back(entry.count);
  }
  timeline["samples"] = std::move(list);
  timeline["samples_left_out"] = left_out_;
  timeline["kept_samples"] = kept_;
  timeline["strings"] = texts_.all();
}

}  // namespace xenoscope::report
