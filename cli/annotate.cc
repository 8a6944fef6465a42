// xenoscope annotate: the code of a function, each line with its samples.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/annotated_code.h"
#include "cli/commands.h"
#include "cli/domain_names.h"
#include "cli/output.h"
#include "cli/profile_source.h"
#include "correlate/profile.h"
#include "report/profile/annotate_view.h"
#include "report/profile/profile_view.h"
#include "report/table/table_json.h"
#include "report/terminal.h"

namespace xenoscope::cli {
namespace {

struct AnnotateOptions {
  std::string symbol;
  ProfileOptions profile;
  std::string by;
  std::vector<std::string> domains;
  std::vector<std::string> sources;
  bool instructions = false;
  std::string format = "text";
  std::string output;  // empty: standard output
};

// "ns::f(int)" is called f, ns::f or as it is, and Xen's "common/vmap.c#f" also f; so are the parts
// of it that compilers put elsewhere, "f.cold" and "ns::f(int) [clone .cold]".
bool IsCalled(const std::string& whole, const std::string& name) {
  if (whole == name) return true;
  std::string function = whole.substr(0, whole.find(" [clone .cold"));
  function = function.substr(0, function.find(".cold"));
  if (function == name) return true;
  const std::string plain = function.substr(0, function.find('('));
  return plain == name || plain.ends_with("::" + name) || plain.ends_with("#" + name);
}

std::string InFormat(const AnnotateOptions& options,
                     const std::vector<report::AnnotatedFunction>& annotated) {
  if (options.format == "json") return report::Dump(AnnotateJson(annotated));
  if (options.format == "csv") return AnnotateCsv(annotated);
  if (options.format == "html") return AnnotateHtml(annotated);
  return AnnotateText(annotated,
                      options.output.empty() ? report::StdoutStyle() : report::TextStyle());
}

absl::Status RunAnnotate(const AnnotateOptions& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(const ProfileSource source, ProfileSource::Open(options.profile));
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<DomainId> domains,
                             ChooseDomains(source.info(), options.domains));
  report::ProfileReport profile;
  XENOSCOPE_RETURN_IF_ERROR(
      source.Profile(options.profile, {.by = CodeColumns(options.by == "exit")}, profile));
  const std::vector<SampledFunction> found =
      SampledFunctions(profile.result.rows, [&](const correlate::ProfileRow& row) {
        return IsCalled(row.function, options.symbol) &&
               (domains.empty() || std::ranges::find(domains, row.domain) != domains.end());
      });
  if (found.empty()) {
    return NotFoundError(
        "no samples in a function '{}'; `xenoscope report` lists the functions with samples",
        options.symbol);
  }
  const std::vector<std::string> exits =
      options.by == "exit" ? ExitsOf(profile, found) : std::vector<std::string>();
  const CodeOptions code{SourceDirectories(options.sources, options.profile.symbols),
                         options.instructions};
  std::vector<report::AnnotatedFunction> annotated;
  annotated.reserve(found.size());
  for (const SampledFunction& function : found) {
    annotated.push_back(Annotate(source, profile, function, exits, code));
  }
  return WriteOutput(options.output, InFormat(options, annotated));
}

}  // namespace

void AddAnnotate(Command program, CommandAction& run) {
  auto options = std::make_shared<AnnotateOptions>();
  Command command = program.AddSubcommand(
      "annotate", "Show the source or instructions of a function with the samples of each line");
  command.AddOption("SYMBOL", options->symbol, "Name of the function, as in `xenoscope report`")
      .Required();
  command
      .AddOption("RECORDING", options->profile.input,
                 "Recording of `xenoscope record`, or a bare trace")
      .ShowDefault();
  command
      .AddOption("--samples", options->profile.source,
                 "recorded: recorded samples; trace: VM exits in the trace; auto: recorded samples "
                 "if there are any")
      .OneOf({"auto", "recorded", "trace"})
      .ShowDefault();
  command.AddOption("--by", options->by, "exit: split the samples of each line by VM exit")
      .OneOf({"exit"});
  command.AddOption("-d,--domain", options->domains, "Only these domains, by name or number")
      .ValueName(kDomainValue)
      .SplitAt(',')
      .OneWordEach();
  command.AddOption("-e,--event", options->profile.event, kEventHelp).ValueName(kEventValue);
  command
      .AddOption("--source", options->sources,
                 "DIR: directory of a source tree; /: the paths of the compiler, on this machine; "
                 "default: the current directory and that of --symfs")
      .ExistingDirectory()
      .OneWordEach();
  command.AddFlag("--instructions", options->instructions,
                  "Show instructions even if there are sources");
  command.AddOption("--format", options->format, "Output format: text, html, json or csv")
      .OneOf({"text", "html", "json", "csv"})
      .ShowDefault();
  command.AddOption("-o,--output", options->output, "Write to this file");
  AddSymbolOptions(command, options->profile.symbols);
  command.SetFooter(
      "Example:\n"
      "  xenoscope annotate do_sched_op web.xeno --xen-syms /usr/lib/debug/xen-syms-4.17\n"
      "  xenoscope annotate leaf_a web.xeno --domain web1 --image web1=gw --by exit\n"
      "  xenoscope annotate leaf_a web.xeno --source ~/src/gw --format html -o leaf_a.html");
  command.SetCallback([&run, options] { run = [options] { return RunAnnotate(*options); }; });
}

}  // namespace xenoscope::cli
