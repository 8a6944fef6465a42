// xenoscope diff: where two profiles differ, and whether by more than chance.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/domain_names.h"
#include "cli/output.h"
#include "cli/profile_source.h"
#include "report/diff_view.h"
#include "report/page.h"
#include "report/table_json.h"
#include "report/terminal.h"

namespace xenoscope::cli {
namespace {

using correlate::Dimension;

constexpr size_t kDefaultLimit = 30;  // rows, in text

// One of the two that are compared.
struct Side {
  ProfileRequest profile;
  std::string domain;  // empty: all
};

struct Options {
  Side before;
  Side after;
  std::string by = "domain,mode,image,function";
  std::string per = "share";
  std::vector<double> work;  // units done in each; empty: not asked for
  std::optional<size_t> limit;
  double threshold = 0;  // percent
  std::string format = "text";
  std::string output;  // empty: standard output
};

std::string NameOf(const Side& side) {
  std::string name = side.profile.input;
  if (!side.domain.empty()) name += ", " + side.domain;
  if (!side.profile.event.empty()) name += ", " + side.profile.event;
  return name;
}

// Leaves only rows of the domain, with shares of its time.
void Narrow(DomainId domain, report::ProfileReport& profile) {
  correlate::ProfileResult& result = profile.result;
  const auto all = std::ranges::find(result.domains, domain, &correlate::ProfileRow::domain);
  const double share = all == result.domains.end() ? 0 : all->share;
  result.samples = all == result.domains.end() ? 0 : all->samples;
  std::erase_if(result.rows,
                [&](const correlate::ProfileRow& row) { return row.domain != domain; });
  for (correlate::ProfileRow& row : result.rows) {
    row.share /= share;
    row.variance /= share * share;
  }
  result.cycles *= share;
}

absl::Status ProfileOf(const Side& side, const std::vector<Dimension>& by,
                       const ProfileSource& source, report::ProfileReport& out) {
  out.by = by;
  const bool narrowed = !side.domain.empty();
  const auto domain = std::ranges::find(out.by, Dimension::kDomain);
  if (narrowed && domain == out.by.end()) out.by.insert(out.by.begin(), Dimension::kDomain);
  XENOSCOPE_RETURN_IF_ERROR(source.Profile(side.profile, out));
  if (!narrowed) return absl::OkStatus();
  XENOSCOPE_ASSIGN_OR_RETURN(const DomainId id, ChooseDomain(source.info(), side.domain));
  Narrow(id, out);
  std::erase(out.by, Dimension::kDomain);  // it may be another one on the other side
  return absl::OkStatus();
}

absl::StatusOr<std::string> InFormat(const Options& options, const report::Diff& diff,
                                     const report::DiffSelection& selection) {
  if (options.format == "json") return report::Dump(DiffJson(diff, selection));
  if (options.format == "csv") return DiffCsv(diff, selection);
  if (options.format == "folded") return DiffFolded(diff, selection);
  if (options.format == "html") {
    nlohmann::ordered_json page =
        report::PageHead(fmt::format("{} against {}", diff.before, diff.after), diff.by);
    page["diff"] = DiffJson(diff, selection);
    return report::ToPage(page);
  }
  return DiffText(diff, selection,
                  options.output.empty() ? report::StdoutStyle() : report::TextStyle());
}

absl::Status RunDiff(const Options& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<Dimension> by, report::ParseDimensions(options.by));
  XENOSCOPE_ASSIGN_OR_RETURN(const ProfileSource first,
                             ProfileSource::Open(options.before.profile));
  XENOSCOPE_ASSIGN_OR_RETURN(const ProfileSource second,
                             ProfileSource::Open(options.after.profile));
  report::ProfileReport before;
  report::ProfileReport after;
  XENOSCOPE_RETURN_IF_ERROR(ProfileOf(options.before, by, first, before));
  XENOSCOPE_RETURN_IF_ERROR(ProfileOf(options.after, by, second, after));
  const bool per_second = options.per == "second";
  if (per_second && !(before.is_time && after.is_time)) {
    return InvalidError("{} does not count time: compare shares",
                        before.is_time ? after.event : before.event);
  }
  report::DiffOf of = per_second ? report::DiffOf::kProcessor : report::DiffOf::kShare;
  report::Work work;
  if (!options.work.empty()) {
    if (before.is_time != after.is_time) {
      return InvalidError("{} and {} do not both count time: compare shares", before.event,
                          after.event);
    }
    of = report::DiffOf::kWork;
    work = {options.work.at(0), options.work.at(1)};
  }
  report::Diff diff = report::DiffOfProfiles(before, after, of, work);
  diff.of_domains = !options.before.domain.empty();
  diff.before = NameOf(options.before);
  diff.after = NameOf(options.after);
  report::DiffSelection selection;
  selection.threshold = options.threshold / 100;
  selection.limit = options.limit.value_or(options.format == "text" ? kDefaultLimit : 0);
  XENOSCOPE_ASSIGN_OR_RETURN(const std::string text, InFormat(options, diff, selection));
  return WriteOutput(options.output, text);
}

void Check(Options& options) {
  const auto by = report::ParseDimensions(options.by);
  if (!by.ok()) throw CLI::ValidationError("--by", std::string(Message(by.status())));
  if (std::ranges::find(*by, Dimension::kAddress) != by->end()) {
    throw CLI::ValidationError("--by", "addresses of two recordings are not comparable");
  }
  Side& after = options.after;
  if (after.profile.input.empty()) after.profile.input = options.before.profile.input;
  if (after.domain.empty()) after.domain = options.before.domain;
  if (after.profile.event.empty()) after.profile.event = options.before.profile.event;
  if (options.before.domain.empty() != after.domain.empty()) {
    throw CLI::ValidationError("--to-domain", "wants --domain: the one it is compared with");
  }
  if (NameOf(options.before) == NameOf(after)) {
    throw CLI::ValidationError(
        "AFTER",
        "compares a recording with itself: name another one, or --to-domain or --to-event");
  }
  after.profile.symbols = options.before.profile.symbols;
}

}  // namespace

void AddDiff(CLI::App& app, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "diff", "Where two recordings, domains or views differ, and whether by more than chance");
  command->add_option("BEFORE", options->before.profile.input, "a recording, or a bare trace")
      ->required();
  options->after.profile.input.clear();
  command->add_option("AFTER", options->after.profile.input, "another; default: the same");
  command
      ->add_option("--by", options->by,
                   "columns: any of domain,vcpu,pcpu,mode,exit,subreason,wakeup,process,image,"
                   "function,line,stack")
      ->capture_default_str();
  command
      ->add_option("--per", options->per,
                   "compare shares of all time, or what takes how much of a processor each second")
      ->check(CLI::IsMember({"share", "second"}))
      ->capture_default_str();
  command
      ->add_option("--work", options->work,
                   "units of work done in each, such as 1000,1200 requests: compare cycles a unit")
      ->delimiter(',')
      ->expected(2)
      ->check(CLI::PositiveNumber)
      ->excludes("--per");
  command->add_option("-d,--domain", options->before.domain,
                      "only this one, by name or number; shares are of its own time");
  command->add_option("--to-domain", options->after.domain,
                      "compare with this one; default: with the same");
  command->add_option("-e,--event", options->before.profile.event,
                      "the event; default: the first that has samples");
  command->add_option("--to-event", options->after.profile.event,
                      "compare with this one: of an agent, what the guest has seen itself");
  command->add_option("-n,--limit", options->limit,
                      "rows; 0: all; default: 30, or all in csv and json");
  command
      ->add_option("-t,--threshold", options->threshold,
                   "only differences of at least so many percent of all time")
      ->check(CLI::Range(0.0, 100.0));
  command
      ->add_option("--format", options->format,
                   "text, json, csv, html: a page for browsers; folded: for flamegraph.pl, which "
                   "colours what became more or less")
      ->check(CLI::IsMember({"text", "json", "csv", "html", "folded"}))
      ->capture_default_str();
  command->add_option("-o,--output", options->output, "into this file");
  AddSymbolOptions(*command, options->before.profile.symbols);
  command->footer(
      "Example:\n"
      "  xenoscope diff before.xeno after.xeno\n"
      "  xenoscope diff before.xeno after.xeno --by domain,exit,function --per second\n"
      "  xenoscope diff before.xeno after.xeno --work 10000,12000\n"
      "  xenoscope diff before.xeno after.xeno --by stack --format folded | flamegraph.pl "
      ">diff.svg\n"
      "  xenoscope diff web.xeno --domain web1 --to-domain web2\n"
      "  xenoscope diff web.xeno --domain web1 --event cycles --to-event cpu-clock");
  command->callback([options, &run] {
    Check(*options);
    run = [options] { return RunDiff(*options); };
  });
}

}  // namespace xenoscope::cli
