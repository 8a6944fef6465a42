// xenoscope report: which functions of which domain the time went to.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
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
#include "correlate/profile.h"
#include "report/profile_view.h"
#include "report/table_json.h"
#include "report/terminal.h"

namespace xenoscope::cli {
namespace {

using correlate::Dimension;

constexpr size_t kDefaultLimit = 20;  // rows of a domain, in text

struct Options {
  ProfileRequest profile;
  std::string by = "domain,mode,function";
  std::vector<std::string> domains;
  std::string sort = "share";
  std::optional<size_t> limit;
  double threshold = 0;  // percent
  std::string format = "text";
};

absl::Status Report(const Options& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(const ProfileSource source, ProfileSource::Open(options.profile));
  report::ProfileReport out;
  XENOSCOPE_ASSIGN_OR_RETURN(out.by, report::ParseDimensions(options.by));
  report::ProfileSelection selection;
  selection.sort = options.sort;
  selection.threshold = options.threshold / 100;
  selection.limit = options.limit.value_or(options.format == "text" ? kDefaultLimit : 0);
  XENOSCOPE_ASSIGN_OR_RETURN(selection.domains, ChooseDomains(source.info(), options.domains));
  if (!selection.domains.empty() &&
      std::find(out.by.begin(), out.by.end(), Dimension::kDomain) == out.by.end()) {
    out.by.insert(out.by.begin(), Dimension::kDomain);
  }
  XENOSCOPE_RETURN_IF_ERROR(source.Profile(options.profile, out));

  if (options.format == "json") return WriteStdout(report::Dump(ProfileJson(out, selection)));
  if (options.format == "csv") return WriteStdout(ProfileCsv(out, selection));
  return WriteStdout(ProfileText(out, selection, report::StdoutStyle()));
}

void Check(const Options& options) {
  const auto by = report::ParseDimensions(options.by);
  if (!by.ok()) throw CLI::ValidationError("--by", std::string(Message(by.status())));
  if (!report::IsSortKey(*by, options.sort)) {
    throw CLI::ValidationError(
        "--sort",
        fmt::format("no column {}; choose from {},samples,share,cycles", options.sort, options.by));
  }
}

}  // namespace

void AddReport(CLI::App& app, Run& run) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand(
      "report", "Samples, time and its uncertainty: by domain, mode, function, VM exit, ...");
  command
      ->add_option("RECORDING", options->profile.input,
                   "what `xenoscope record` wrote, or a bare trace")
      ->capture_default_str();
  command
      ->add_option("--source", options->profile.source,
                   "recorded samples; trace: where the VM exits in the trace found HVM guests; "
                   "auto: the recorded ones, where there are any")
      ->check(CLI::IsMember({"auto", "recorded", "trace"}))
      ->capture_default_str();
  command
      ->add_option("--by", options->by,
                   "columns: any of domain,vcpu,pcpu,mode,exit,process,image,function,address")
      ->capture_default_str();
  command
      ->add_option("-d,--domain", options->domains,
                   "only these, by name or number; shares stay "
                   "those of all")
      ->delimiter(',');
  command->add_option("-e,--event", options->profile.event,
                      "the event; default: the first that has samples");
  command->add_option_function<std::string>(
      "--from",
      [options](const std::string& text) { options->profile.from = ParseInstant("--from", text); },
      "only samples from here on: seconds after the beginning, or @TSC, as dump has them");
  command->add_option_function<std::string>(
      "--to",
      [options](const std::string& text) { options->profile.to = ParseInstant("--to", text); },
      "only samples before this");
  command->add_option("-s,--sort", options->sort, "order by this column")->capture_default_str();
  command->add_option("-n,--limit", options->limit,
                      "rows of each domain; 0: all; default: 20, or all in csv and json");
  command->add_option("-t,--threshold", options->threshold, "only rows with this share, in percent")
      ->check(CLI::Range(0.0, 100.0));
  command->add_option("--format", options->format, "text, json or csv")
      ->check(CLI::IsMember({"text", "json", "csv"}))
      ->capture_default_str();
  AddSymbolOptions(*command, options->profile.symbols);
  command->footer(
      "Example:\n"
      "  xenoscope report web.xeno\n"
      "  xenoscope report web.xeno --by domain,exit,function --limit 10\n"
      "  xenoscope report web.xeno --domain web1 --kernel web1=System.map --format json");
  command->callback([options, &run] {
    Check(*options);
    run = [options] { return Report(*options); };
  });
}

}  // namespace xenoscope::cli
