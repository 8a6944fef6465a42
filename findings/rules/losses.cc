// Records of the trace, and samples, that were lost.
#include <fmt/format.h>

#include "base/figure_text.h"
#include "findings/rule.h"
#include "findings/trace_tables.h"

namespace xenoscope::findings {
namespace {

// The part of the pCPUs' time, or of the samples, from which on a loss matters.
constexpr double kMinLostPart = 0.01;

void FindLostRecords(const Results& results, std::vector<Finding>& out) {
  const analysis::MetricGroup* const pcpus = FindGroup(results.trace->trace, "utilisation");
  if (pcpus == nullptr || pcpus->rows.empty()) return;
  uint64_t records = 0;
  Cycles cycles = 0;
  for (const analysis::MetricRow& pcpu : pcpus->rows) {
    records += Figure(pcpu, "lost_records");
    for (const analysis::MetricRow& part : pcpu.parts) {
      if (part.name == "lost") cycles += Figure(part, "cycles");
    }
  }
  const double all = static_cast<double>(results.traced) * static_cast<double>(pcpus->rows.size());
  if (all == 0 || static_cast<double>(cycles) < kMinLostPart * all) return;
  Finding finding;
  finding.text = fmt::format("the trace lost {} records, in {} of the pCPUs' time",
                             CountText(records), ShareText(static_cast<double>(cycles) / all));
  finding.advice = "Record with a larger --trace-buffer, or with fewer --trace-events.";
  finding.cycles = static_cast<double>(cycles);
  finding.figures = {{"records", analysis::MetricUnit::kCount, records}};
  finding.command = {"summary", "--sections", "utilisation"};
  out.push_back(std::move(finding));
}

void FindLostSamples(const Results& results, std::vector<Finding>& out) {
  const auto lost = static_cast<double>(results.sample_set->lost_in_buffers);
  const auto kept = static_cast<double>(results.profile->counts.samples);
  if (lost == 0 || lost < kMinLostPart * (lost + kept)) return;
  Finding finding;
  finding.text =
      fmt::format("{} samples were lost because their buffers were full: {} of all",
                  CountText(results.sample_set->lost_in_buffers), ShareText(lost / (lost + kept)));
  finding.advice = "Record with a smaller --drain-interval or a larger --buffer-samples.";
  if (results.sample_set->is_time) finding.cycles = lost * results.sample_set->period;
  finding.figures = {
      {"samples", analysis::MetricUnit::kCount, results.sample_set->lost_in_buffers}};
  finding.command = {"report", "--by", "domain"};
  out.push_back(std::move(finding));
}

}  // namespace

void FindLosses(const Results& results, std::vector<Finding>& out) {
  if (results.trace != nullptr) FindLostRecords(results, out);
  if (results.profile != nullptr) FindLostSamples(results, out);
}

}  // namespace xenoscope::findings
