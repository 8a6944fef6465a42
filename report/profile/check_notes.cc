#include "report/profile/check_notes.h"

#include <fmt/format.h>

#include "report/table/table.h"

namespace xenoscope::report {
namespace {

using correlate::DomainCheck;
using correlate::PlacingCheck;
using nlohmann::ordered_json;

std::string Percent(double share) { return CellText(share, ColumnUnit::kShare); }

double Seconds(const ProfileReport& report, double cycles) {
  return report.clock.hz == 0 ? 0 : cycles / static_cast<double>(report.clock.hz);
}

std::string Time(const ProfileReport& report, double cycles) {
  return CellText(Seconds(report, cycles), ColumnUnit::kSeconds);
}

std::string NoteOf(const ProfileReport& report, const DomainCheck& check) {
  const std::string_view suspect = report.counts.lost_records > 0 ? "the trace lost records"
                                   : report.lost_in_buffers > 0   ? "samples were lost"
                                                                : "samples are not uniform in time";
  return fmt::format("{} has {} of the samples of traced time, but {} of that time: {}",
                     DomainLabel(report, check.domain), Percent(check.sampled),
                     Percent(check.traced), suspect);
}

void AddNotes(const ProfileReport& report, const PlacingCheck& check,
              std::vector<std::string>& notes) {
  const std::string domain = DomainLabel(report, check.domain);
  if (check.HasImpossibleSamples()) {
    const double part = static_cast<double>(check.impossible) / static_cast<double>(check.samples);
    notes.push_back(fmt::format(
        "{} of the samples of {} are of times when its vCPU did not run, or not in that mode, says "
        "the trace: {}",
        Percent(part), domain,
        report.counts.lost_records > 0
            ? "it lost records"
            : "its clocks or those of the samples are wrong; summary tells of a skew"));
  }
  if (check.HasLongBrackets()) {
    notes.push_back(fmt::format(
        "samples of {} are known to {}, and its vCPUs run for {} at a time: in which of several "
        "turns they were is estimated; a shorter --drain-interval tells",
        domain, Time(report, check.bracket), Time(report, check.timeslice)));
  }
  if (check.IsAliased()) {
    notes.push_back(fmt::format(
        "samples of {} are in step with its work: of those whose time is known, {} too many or too "
        "few come early in a turn; record with another period, or with --source vcpu, which looks "
        "at random instants",
        domain, Percent(check.distance)));
  }
}

}  // namespace

std::vector<std::string> CheckNotes(const ProfileReport& report) {
  std::vector<std::string> notes;
  for (const DomainCheck& check : report.result.checks) {
    if (!check.Agrees()) notes.push_back(NoteOf(report, check));
  }
  for (const PlacingCheck& check : report.placing_checks) AddNotes(report, check, notes);
  return notes;
}

std::vector<std::string> UnresolvedNotes(const ProfileReport& report) {
  std::vector<std::string> notes;
  for (const correlate::Unresolved& unresolved : report.result.unresolved) {
    notes.push_back(fmt::format("{} {} without a function: {}",
                                CellText(unresolved.samples, ColumnUnit::kCount),
                                unresolved.samples == 1 ? "sample" : "samples", unresolved.why));
  }
  return notes;
}

ordered_json DomainChecksJson(const ProfileReport& report) {
  ordered_json checks = ordered_json::array();
  for (const DomainCheck& check : report.result.checks) {
    checks.push_back({{"domain", DomainLabel(report, check.domain)},
                      {"sampled", check.sampled},
                      {"traced", check.traced},
                      {"error", check.error},
                      {"agrees", check.Agrees()}});
  }
  return checks;
}

ordered_json PlacingChecksJson(const ProfileReport& report) {
  ordered_json checks = ordered_json::array();
  for (const PlacingCheck& check : report.placing_checks) {
    checks.push_back({{"domain", DomainLabel(report, check.domain)},
                      {"samples", check.samples},
                      {"impossible", check.impossible},
                      {"says_impossible", check.HasImpossibleSamples()},
                      {"bracketed", check.bracketed},
                      {"bracket_seconds", Seconds(report, check.bracket)},
                      {"turn_seconds", Seconds(report, check.timeslice)},
                      {"long_brackets", check.HasLongBrackets()},
                      {"at_known_instants", check.exact},
                      {"missed", check.missed},
                      {"distance_of_turn_ages", check.distance},
                      {"in_step", check.IsAliased()}});
  }
  return checks;
}

}  // namespace xenoscope::report
