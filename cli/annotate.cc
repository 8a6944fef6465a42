// xenoscope annotate: the code of a function, each line with its samples.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/domain_names.h"
#include "cli/output.h"
#include "cli/profile_source.h"
#include "correlate/profile.h"
#include "report/profile/annotate_view.h"
#include "report/profile/profile_view.h"
#include "report/table/table_json.h"
#include "report/terminal.h"
#include "symbolizer/listing.h"

namespace xenoscope::cli {
namespace {

using correlate::Dimension;
using correlate::ProfileRow;

struct Options {
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

// The samples of one function of one image in one domain.
struct Found {
  symbolizer::CodeLocation function;
  std::vector<symbolizer::SampledAddress> samples;
  double total = 0;
  double share = 0;
};

using Key = std::tuple<DomainId, std::string, std::string>;  // domain, image, function

std::map<Key, Found> Find(const Options& options, const report::ProfileReport& profile,
                          const std::vector<DomainId>& domains,
                          const std::vector<std::string>& exits, const ProfileSource& source) {
  std::map<Key, Found> functions;
  for (const ProfileRow& row : profile.result.rows) {
    if (!IsCalled(row.function, options.symbol)) continue;
    if (!domains.empty() && std::ranges::find(domains, row.domain) == domains.end()) continue;
    Found& found = functions[{row.domain, row.image, row.function}];
    found.total += row.samples;
    found.share += row.share;
    const auto place = source.symbols().LocationOf(row.domain, row.mode, row.process, row.address);
    if (!place) continue;
    found.function = *place;
    symbolizer::SampledAddress& sample = found.samples.emplace_back();
    sample.address = place->address;
    sample.samples.resize(std::max<size_t>(1, exits.size()));
    const auto exit = std::ranges::find(exits, report::ContextName(profile, row.exit));
    sample.samples[exit == exits.end() ? 0 : static_cast<size_t>(exit - exits.begin())] =
        row.samples;
  }
  return functions;
}

// Names of the exits in which the function has samples, most first.
std::vector<std::string> ExitsOf(const Options& options, const report::ProfileReport& profile) {
  if (options.by != "exit") return {};
  std::map<std::string, double> samples;
  for (const ProfileRow& row : profile.result.rows) {
    if (!IsCalled(row.function, options.symbol)) continue;
    samples[report::ContextName(profile, row.exit)] += row.samples;
  }
  std::vector<std::string> exits;
  exits.reserve(samples.size());
  for (const auto& [exit, ignored] : samples) exits.push_back(exit);
  std::ranges::sort(exits, [&](const auto& a, const auto& b) { return samples[a] > samples[b]; });
  return exits;
}

double Sum(const std::vector<double>& samples) {
  double sum = 0;
  for (const double part : samples) sum += part;
  return sum;
}

report::AnnotatedFunction Annotate(const Options& options, const ProfileSource& source,
                                   const Key& key, const Found& found,
                                   const std::vector<std::string>& exits) {
  report::AnnotatedFunction annotated;
  const DomainId domain = std::get<DomainId>(key);
  annotated.domain = report::DomainTitle(domain, source.DomainName(domain));
  annotated.image = std::get<1>(key);
  annotated.function = std::get<2>(key);
  annotated.samples = found.total;
  annotated.share = found.share;
  annotated.exits = exits;
  // The working directory is the default tree of sources.
  std::vector<std::string> directories = options.sources;
  if (directories.empty()) directories.emplace_back(".");
  if (!options.profile.symbols.symfs.empty()) {
    directories.push_back(options.profile.symbols.symfs);
  }
  absl::StatusOr<symbolizer::Listing> listing = absl::CancelledError("not selected");
  if (!options.instructions) {
    listing = symbolizer::ListSource(found.function, found.samples,
                                     symbolizer::SourceFinder(std::move(directories)));
  }
  if (!listing.ok()) {
    const absl::Status no_source = listing.status();
    listing = symbolizer::ListInstructions(found.function, found.samples);
    const bool has_code = std::ranges::any_of(
        listing->lines, [](const symbolizer::ListedLine& line) { return !line.code.empty(); });
    if (!has_code) {
      annotated.cautions.push_back(
          fmt::format("the code of {} is not available, so only addresses are shown; name its ELF "
                      "file with --kernel, --xen-syms or --image",
                      annotated.image));
    } else if (!options.instructions) {
      annotated.cautions.push_back(fmt::format("instructions: {}", Message(no_source)));
    }
  }
  annotated.cautions.emplace_back(
      "a sample's address is where the CPU stopped: a few instructions after the counted one, "
      "often after one that waited");
  report::CodeBlock& block = annotated.blocks.emplace_back();
  block.title = listing->title;
  for (symbolizer::ListedLine& line : listing->lines) {
    report::CodeLine& row = block.lines.emplace_back();
    row.place = std::move(line.place);
    row.code = std::move(line.code);
    row.samples = Sum(line.samples);
    if (!exits.empty()) row.by_exit = std::move(line.samples);
    for (symbolizer::ListedLine::Inlined& inlined : line.inlined) {
      row.inlined.push_back({std::move(inlined.function), Sum(inlined.samples)});
    }
  }
  return annotated;
}

std::string InFormat(const Options& options,
                     const std::vector<report::AnnotatedFunction>& annotated) {
  if (options.format == "json") return report::Dump(AnnotateJson(annotated));
  if (options.format == "csv") return AnnotateCsv(annotated);
  if (options.format == "html") return AnnotateHtml(annotated);
  return AnnotateText(annotated,
                      options.output.empty() ? report::StdoutStyle() : report::TextStyle());
}

absl::Status RunAnnotate(const Options& options) {
  XENOSCOPE_ASSIGN_OR_RETURN(const ProfileSource source, ProfileSource::Open(options.profile));
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<DomainId> domains,
                             ChooseDomains(source.info(), options.domains));
  report::ProfileReport profile;
  profile::ProfileColumns columns{.by = {Dimension::kDomain, Dimension::kMode, Dimension::kImage,
                                         Dimension::kFunction, Dimension::kAddress,
                                         Dimension::kProcess}};
  if (options.by == "exit") columns.by.push_back(Dimension::kExit);
  XENOSCOPE_RETURN_IF_ERROR(source.Profile(options.profile, std::move(columns), profile));
  const std::vector<std::string> exits = ExitsOf(options, profile);
  const std::map<Key, Found> found = Find(options, profile, domains, exits, source);
  if (found.empty()) {
    return NotFoundError(
        "no samples in a function '{}'; `xenoscope report` lists the functions with samples",
        options.symbol);
  }
  std::vector<report::AnnotatedFunction> annotated;
  annotated.reserve(found.size());
  for (const auto& [key, function] : found) {
    annotated.push_back(Annotate(options, source, key, function, exits));
  }
  std::ranges::stable_sort(annotated,
                           [](const auto& a, const auto& b) { return a.samples > b.samples; });
  return WriteOutput(options.output, InFormat(options, annotated));
}

}  // namespace

void AddAnnotate(Command program, CommandAction& run) {
  auto options = std::make_shared<Options>();
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
