#include "report/profile/check_notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <utility>

#include <nlohmann/json.hpp>

#include "report/table/table.h"

namespace xenoscope::report {
namespace {

using correlate::DomainCheck;
using correlate::PlacingCheck;
using nlohmann::ordered_json;

double Seconds(const ProfileReport& report, double cycles) {
  return report.clock.hz == 0 ? 0 : cycles / static_cast<double>(report.clock.hz);
}

constexpr size_t kMaxNamedFigures =
    3;  // domains of a note; of more the number and the range are given
constexpr std::string_view kTraceLost =
    "The trace lost records. Record with a larger --trace-buffer or fewer --trace-events.";

// One domain's figure in a note.
struct DomainFigure {
  DomainId domain;
  double value = 0;
};

// Returns "dom0 ±50 ms, web ±63 ms", or the number of domains and the range of their figures:
// "12 domains, ±50 ms to ±63 ms".
template <typename Format>
std::string FigureList(const ProfileReport& report, const std::vector<DomainFigure>& figures,
                       const Format& format) {
  if (figures.size() > kMaxNamedFigures) {
    const auto [low, high] = std::ranges::minmax(figures, {}, &DomainFigure::value);
    return fmt::format("{} domains, {} to {}", figures.size(), format(low.value),
                       format(high.value));
  }
  std::vector<std::string> list;
  list.reserve(figures.size());
  for (const DomainFigure& figure : figures) {
    list.push_back(fmt::format("{} {}", DomainLabel(report, figure.domain), format(figure.value)));
  }
  return fmt::format("{}", fmt::join(list, ", "));
}

// "100 ms", "1.4 ms": as many digits as an estimate deserves.
std::string RoundedTime(double seconds) {
  constexpr double kTwoDigits = 9.95;
  const auto [scale, unit] = seconds >= 1      ? std::pair(1.0, "s")
                             : seconds >= 1e-3 ? std::pair(1e3, "ms")
                                               : std::pair(1e6, "us");
  const double value = seconds * scale;
  return value < kTwoDigits ? fmt::format("{:.1f} {}", value, unit)
                            : fmt::format("{:.0f} {}", value, unit);
}

// Returns "1.4 ms" or "1.4 ms to 5.7 ms".
std::string TimeRange(double low, double high) {
  const std::string from = RoundedTime(low);
  const std::string to = RoundedTime(high);
  return from == to ? from : fmt::format("{} to {}", from, to);
}

// The time in which Xen's vPMU could take no sample, as it held one until dom0's Linux took that.
struct HeldTime {
  double ran = 0;   // of the domains with samples, in cycles
  double held = 0;  // cycles of this in which a sample was held
  uint64_t samples = 0;
  std::vector<DomainFigure> domains;  // the part of each domain's time
};

HeldTime HeldTimeOf(const ProfileReport& report) {
  HeldTime all;
  for (const PlacingCheck& check : report.placing_checks) {
    all.ran += check.ran;
    all.held += check.held;
    all.samples += check.samples;
    if (check.held > 0 && check.ran > 0) {
      all.domains.push_back({check.domain, check.held / check.ran});
    }
  }
  return all;
}

std::string_view LossAdvice(const ProfileReport& report) {
  if (report.counts.lost_records > 0) return kTraceLost;
  if (report.lost_in_buffers > 0) {
    return "Samples were lost. Record with a smaller --drain-interval or a larger "
           "--buffer-samples.";
  }
  if (HeldTimeOf(report).held > 0) return "Xen's vPMU drops samples.";
  return "Samples are not uniform in time. Record with another period, or with --source vcpu.";
}

// Domains whose parts of samples and of time differ by more than chance.
void AddDomainNote(const ProfileReport& report, std::vector<std::string>& notes) {
  std::vector<std::string> named;
  size_t disagree = 0;
  for (const DomainCheck& check : report.result.checks) {
    if (check.Agrees() || ++disagree > kMaxNamedFigures) continue;
    named.push_back(fmt::format("{} has {} of the samples but {} of the time",
                                DomainLabel(report, check.domain), Percent(check.sampled),
                                Percent(check.traced)));
  }
  if (disagree == 0) return;
  if (disagree > kMaxNamedFigures)
    named.push_back(fmt::format("{} more", disagree - kMaxNamedFigures));
  notes.push_back(fmt::format("Samples and trace disagree ({}). {}", fmt::join(named, ", "),
                              LossAdvice(report)));
}

void AddHeldNote(const ProfileReport& report, std::vector<std::string>& notes) {
  const HeldTime time = HeldTimeOf(report);
  if (time.held <= 0 || time.held >= time.ran) return;
  std::string came;
  if (report.is_time && report.period > 0) {
    came = fmt::format("{} of some {} samples came. ", Count(time.samples),
                       Count(static_cast<uint64_t>(time.ran / report.period)));
  }
  notes.push_back(fmt::format(
      "{}Xen's vPMU holds one sample until dom0's vCPU runs, and drops all others: {} of the time "
      "({}). Shares of domains are not affected, as the trace measures their time.",
      came, Percent(time.held / time.ran), FigureList(report, time.domains, Percent)));
}

void AddImpossibleNote(const ProfileReport& report, std::vector<std::string>& notes) {
  std::vector<DomainFigure> figures;
  for (const PlacingCheck& check : report.placing_checks) {
    if (!check.HasImpossibleSamples()) continue;
    figures.push_back(
        {check.domain, static_cast<double>(check.impossible) / static_cast<double>(check.samples)});
  }
  if (figures.empty()) return;
  notes.push_back(fmt::format(
      "The trace contradicts samples ({} of the samples): their vCPU was not running, or was in "
      "another mode. {}",
      FigureList(report, figures, Percent),
      report.counts.lost_records > 0
          ? kTraceLost
          : "The clocks of pCPUs may differ: `xenoscope summary` shows their skew."));
}

void AddDrainNote(const ProfileReport& report, std::vector<std::string>& notes) {
  std::vector<DomainFigure> figures;
  double shortest = std::numeric_limits<double>::infinity();
  double longest = 0;
  for (const PlacingCheck& check : report.placing_checks) {
    if (!check.HasLongBrackets()) continue;
    figures.push_back({check.domain, Seconds(report, check.bracket) / 2});
    const double timeslice = Seconds(report, check.timeslice);
    shortest = std::min(shortest, timeslice);
    longest = std::max(longest, timeslice);
  }
  if (figures.empty()) return;
  notes.push_back(fmt::format(
      "Sample times are coarse ({}; timeslices last {}), so exit attribution is estimated. Record "
      "with a smaller --drain-interval.",
      FigureList(report, figures,
                 [](double seconds) { return fmt::format("±{}", RoundedTime(seconds)); }),
      TimeRange(shortest, longest)));
}

// Only samples of all time are uniform in it.
bool IsAliased(const ProfileReport& report, const PlacingCheck& check) {
  return report.stratified && check.IsAliased();
}

void AddAliasingNote(const ProfileReport& report, std::vector<std::string>& notes) {
  std::vector<DomainFigure> figures;
  for (const PlacingCheck& check : report.placing_checks) {
    if (IsAliased(report, check)) figures.push_back({check.domain, check.distance});
  }
  if (figures.empty()) return;
  notes.push_back(fmt::format(
      "Samples are in step with the work that they sample ({} too many or too few early in a "
      "timeslice). Record with another period, or with --source vcpu, which samples at random.",
      FigureList(report, figures, Percent)));
}

}  // namespace

std::vector<std::string> CheckNotes(const ProfileReport& report) {
  std::vector<std::string> notes;
  AddDomainNote(report, notes);
  AddHeldNote(report, notes);
  AddImpossibleNote(report, notes);
  AddDrainNote(report, notes);
  AddAliasingNote(report, notes);
  return notes;
}

std::vector<std::string> UnresolvedNotes(const ProfileReport& report) {
  constexpr size_t kMaxReasons = 4;
  const std::vector<correlate::Unresolved>& unresolved = report.result.unresolved;
  if (unresolved.empty()) return {};
  double all = 0;
  double others = 0;
  std::vector<std::string> reasons;
  for (const correlate::Unresolved& one : unresolved) {
    all += one.samples;
    if (reasons.size() == kMaxReasons) {
      others += one.samples;
      continue;
    }
    reasons.push_back(
        unresolved.size() == 1
            ? one.why
            : fmt::format("{} ({})", one.why, CellText(one.samples, ColumnUnit::kCount)));
  }
  std::string note =
      fmt::format("{} {} no function: {}", CellText(all, ColumnUnit::kCount),
                  all == 1 ? "sample has" : "samples have", fmt::join(reasons, "; "));
  if (others > 0) {
    note += fmt::format("; {} other reasons ({}), see --origins", unresolved.size() - kMaxReasons,
                        CellText(others, ColumnUnit::kCount));
  }
  return {note};
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
                      {"clocked", check.clocked},
                      {"clock_error_seconds", Seconds(report, check.clock_error)},
                      {"turn_seconds", Seconds(report, check.timeslice)},
                      {"long_brackets", check.HasLongBrackets()},
                      {"at_known_instants", check.exact},
                      {"missed", check.missed},
                      {"seconds", Seconds(report, check.ran)},
                      {"held_seconds", Seconds(report, check.held)},
                      {"distance_of_turn_ages", check.distance},
                      {"in_step", IsAliased(report, check)}});
  }
  return checks;
}

}  // namespace xenoscope::report
