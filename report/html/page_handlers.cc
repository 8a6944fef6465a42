#include "report/html/page_handlers.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "report/markup.h"
#include "report/threads/interrupts_view.h"

namespace xenoscope::report {

using nlohmann::ordered_json;

uint32_t PageHandlers::NumberOf(const guests::InterruptKey& key) {
  const auto known = numbers_.find(key);
  if (known != numbers_.end()) return known->second;
  const auto number = static_cast<uint32_t>(numbers_.size());
  return numbers_.emplace(key, number).first->second;
}

void PageHandlers::Add(const guests::HandlerRun& run) {
  Vcpu& vcpu = vcpus_[{run.domain, VcpuId{run.cpu}}];
  Row& row = run.of.is_soft ? vcpu.softirqs : vcpu.irqs;
  // Kernels do not interrupt a handler by another one of its kind; events may say that they do.
  const TscRange range =
      TscRange{std::max(run.range.begin, row.end), run.range.end}.Intersect(shown_);
  if (range.Empty()) return;
  row.end = range.end;
  limit_.Add(row.track, NumberOf(run.of), TrackPart::kFirst, range.begin - shown_.begin,
             range.Length(), [this](auto visit) { ForEachTrack(visit); });
}

void PageHandlers::ForEachTrack(absl::FunctionRef<void(IntervalTrack&)> visit) {
  for (auto& [ref, vcpu] : vcpus_) {
    visit(vcpu.irqs.track);
    visit(vcpu.softirqs.track);
  }
}

absl::StatusOr<ordered_json> PageHandlers::ToJson(
    const std::function<std::string(DomainId)>& label) {
  ordered_json vcpus = ordered_json::array();
  for (auto& [ref, vcpu] : vcpus_) {
    vcpus.push_back(fmt::format("{} v{}", label(ref.domain), ref.vcpu.value));
  }
  ordered_json names = ordered_json::array();
  for (const auto& [key, number] : numbers_) names[number] = Printable(HandlerTitle(key));
  XENOSCOPE_RETURN_IF_ERROR(
      limit_.Fit(kMaxIntervalBytes, [this](auto visit) { ForEachTrack(visit); }));
  return ordered_json{
      {"names", std::move(names)}, {"vcpus", std::move(vcpus)}, {"rows", limit_.packed().ToJson()}};
}

}  // namespace xenoscope::report
