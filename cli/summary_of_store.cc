#include "cli/summary_of_store.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/error.h"
#include "cli/options.h"
#include "cli/output.h"
#include "report/summary/summary_view.h"
#include "report/table/table_json.h"
#include "report/terminal.h"
#include "store/bounded_text.h"
#include "store/trace_totals.h"

namespace xenoscope::cli {
namespace {

std::string JsonOf(const store::TraceTotals& totals, const analysis::Section& section, Clock clock,
                   const std::string& url) {
  nlohmann::ordered_json json = {{"store", url},
                                 {"hosts", totals.hosts()},
                                 {"slices", totals.slices()},
                                 {"traced_slices", totals.traced_slices()},
                                 {"hypercall_slices", totals.hypercall_slices()},
                                 {"cycles", totals.traced()},
                                 {"cpu_hz", clock.hz}};
  report::AddGroupsJson(section, json);
  return report::Dump(json);
}

}  // namespace

void CheckStoreSections(const std::vector<std::string>& sections) {
  std::vector<std::string_view> known;
  for (const analysis::GroupInfo& group : store::TraceTotals::Groups()) known.push_back(group.key);
  for (const std::string& section : sections) {
    if (std::ranges::find(known, section) != known.end()) continue;
    ThrowUsageError("--sections", fmt::format("of a store are {}; ask a recording for {}",
                                              fmt::join(known, ", "), section));
  }
}

namespace {

// What the summary of some slices says, and of which slices.
struct Summarised {
  Clock clock;
  std::string note;
  store::TraceTotals totals{0};
  analysis::Document document;  // its sections that were asked for
};

absl::StatusOr<Summarised> SummaryOf(const StoreSummaryOptions& options) {
  Summarised out;
  XENOSCOPE_ASSIGN_OR_RETURN(out.totals, TraceTotalsOfStore(options.store, out.clock, out.note));
  if (out.totals.traced_slices() == 0) {
    return NotFoundError(
        "{}: none of these {} slices has a trace; push recordings with a trace, by this version of "
        "xenoscope",
        options.store.url, out.totals.slices());
  }
  store::TraceTotals::View view{options.by_vcpu, {}};
  for (const std::string& domain : options.domains) {
    view.domains.push_back(store::BoundedName(domain));
  }
  out.document.trace = out.totals.Describe(view);
  if (!view.domains.empty() && out.document.trace.groups.front().rows.empty()) {
    return NotFoundError("{}: no slice of these hosts and times has the domain {}",
                         options.store.url, fmt::join(options.domains, ", "));
  }
  report::Select({{}, options.sections}, out.document);
  return out;
}

std::string TextOf(const Summarised& summary, const report::SummaryStyle& style) {
  const store::TraceTotals& totals = summary.totals;
  std::string text = summary.note + '\n';
  if (totals.traced_slices() < totals.slices()) {
    text += fmt::format("{} of these slices have a trace; the others are left out below\n",
                        totals.traced_slices());
  }
  if (totals.hypercall_slices() < totals.traced_slices()) {
    text += fmt::format(
        "hypercalls are those of {} slices: the others were pushed by an older version\n",
        totals.hypercall_slices());
  }
  analysis::TraceMetadata metadata;
  metadata.clock = summary.clock;
  metadata.range = {Tsc(), Tsc() + totals.traced()};
  return text + '\n' + report::GroupsText(summary.document.trace, metadata, style);
}

}  // namespace

absl::StatusOr<std::string> StoreSummaryText(const StoreSummaryOptions& options,
                                             const report::TextStyle& style) {
  XENOSCOPE_ASSIGN_OR_RETURN(const Summarised summary, SummaryOf(options));
  return TextOf(summary, {.text = style, .details = options.details});
}

absl::Status SummariseStore(const StoreSummaryOptions& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(const Summarised summary, SummaryOf(options));
  if (options.format == "csv") return WriteStdout(report::SummaryCsv(summary.document));
  if (options.format == "json") {
    return WriteStdout(
        JsonOf(summary.totals, summary.document.trace, summary.clock, options.store.url));
  }
  return WriteStdout(TextOf(summary, {.text = report::StdoutStyle(), .details = options.details}));
}

}  // namespace xenoscope::cli
