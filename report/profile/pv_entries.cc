#include "report/profile/pv_entries.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "report/export/timeline_names.h"

namespace xenoscope::report {

std::vector<std::string> PvEntryNotes(const ProfileReport& report,
                                      const ProfileSelection& selection) {
  std::vector<std::string> notes;
  if (report.chosen) return notes;  // other rows were asked for
  DomainId domain;
  for (const profile::PvEntries& entries : report.pv_entries) {
    correlate::ProfileRow row;
    row.domain = entries.domain;
    if (!IsSelected(selection, row)) continue;
    std::string text =
        fmt::format("{} {} (≤ {})", Count(entries.count), MarkKindName(entries.kind),
                    CellText(report.clock.Seconds(entries.at_most), ColumnUnit::kSeconds));
    if (!notes.empty() && domain == entries.domain) {
      notes.back() += ", " + text;
    } else {
      notes.push_back(fmt::format("{} entered Xen while running: {}",
                                  DomainLabel(report, entries.domain), text));
    }
    domain = entries.domain;
  }
  if (!notes.empty()) {
    notes.emplace_back(
        "≤: the trace has when a PV guest entered Xen; its vCPU's next record, or the end of its "
        "run, bounds when it left.");
  }
  return notes;
}

nlohmann::ordered_json PvEntriesJson(const ProfileReport& report) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const profile::PvEntries& entries : report.pv_entries) {
    out.push_back({{"domid", entries.domain.value},
                   {"kind", MarkKindName(entries.kind)},
                   {"count", entries.count},
                   {"at_most_cycles", entries.at_most}});
  }
  return out;
}

}  // namespace xenoscope::report
