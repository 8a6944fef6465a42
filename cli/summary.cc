// xenoscope summary: what every domain and vCPU was doing, from the trace alone.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/analyse_trace.h"
#include "analysis/summary/registry.h"
#include "base/error.h"
#include "base/heap.h"
#include "cli/commands.h"
#include "cli/domain_names.h"
#include "cli/output.h"
#include "cli/store_source.h"
#include "cli/summary_of_store.h"
#include "cli/symbol_options.h"
#include "cli/thread_options.h"
#include "cli/trace_options.h"
#include "findings/find.h"
#include "report/findings/findings_view.h"
#include "report/summary/summary_view.h"
#include "report/table/table_json.h"
#include "report/terminal.h"
#include "trace/probe.h"

namespace xenoscope::cli {
namespace {

struct SummaryOptions {
  profile::TraceRequest trace;
  StoreOptions store;  // in place of a trace
  std::string format = "text";
  unsigned threads = 0;
  std::vector<std::string> domains;
  SymbolOptions symbols;
  std::vector<std::string> sections;
  bool all = false;
  bool findings = false;  // instead of the summary
  bool pcpus = false;
  bool vcpus = false;
};

// Returns the names of the figures for which no events were recorded.
std::vector<std::string_view> NotRecorded(const profile::TraceInput& input) {
  if (!input.event_mask) return {};
  return trace::MissingFigures(*input.event_mask, trace::AllFigures());
}

// Returns the keys of all sections, in the order of the text; those of stores alone come last.
std::vector<std::string> SectionKeys() {
  std::vector<std::string> keys;
  for (const analysis::GroupInfo& group : analysis::AllGroups()) {
    if (std::ranges::find(keys, group.key) == keys.end()) keys.emplace_back(group.key);
  }
  for (const analysis::GroupInfo& group : store::TraceTotals::Groups()) {
    if (std::ranges::find(keys, group.key) == keys.end()) keys.emplace_back(group.key);
  }
  return keys;
}

// Returns a paragraph of the sections of one level, in lines of at most 80 columns.
std::string SectionList(std::string_view title, analysis::SectionLevel level) {
  constexpr size_t kIndent = 9;
  constexpr size_t kWidth = 80;
  std::string text;
  std::string line = fmt::format("  {:<{}}", title, kIndent - 2);
  for (const analysis::GroupInfo& group : analysis::AllGroups()) {
    if (group.level != level) continue;
    if (line.size() + 1 + group.key.size() > kWidth) {
      text += line + '\n';
      line = std::string(kIndent, ' ');
    }
    line += fmt::format(" {}", group.key);
  }
  return text + line + '\n';
}

// Returns what stands at the end of -h.
std::string Footer() {
  using enum analysis::SectionLevel;
  return "Sections:\n" + SectionList("trace", kTrace) + SectionList("domain", kDomain) +
         SectionList("vCPU", kVcpu) + "  store   runstates waited_for exits findings losses\n" +
         fmt::format(
             "Text of a host with more than {} pCPUs or {} domains has a table for each pCPU only\n"
             "with --pcpu, and for each domain and vCPU only with --vcpu or --domain; --all and\n"
             "--sections show both. json and csv always contain everything.\n"
             "Examples:\n"
             "  xenoscope summary web.xeno\n"
             "  xenoscope summary --domain web1 --sections runstates,exits web.xeno\n"
             "  xenoscope summary --kernel 3=System.map --sections interrupt_eip trace.bin\n"
             "  xenoscope summary --format json trace.bin | jq '.domains[].vcpus[].exits'\n"
             "  xenoscope summary --from-store sqlite:fleet.db --since 24h --sections exits,losses",
             report::kMostPcpusShown, report::kMostDomainsShown);
}

// Returns what stands out in the analysed trace.
std::string FindingsOf(const profile::TraceInput& input, const analysis::AnalysisResult& result,
                       const SummaryOptions& options, const std::vector<DomainId>& domains) {
  std::vector<findings::Finding> found = findings::Find(
      {.trace = &result.document,
       .traced = result.metadata.range.Length(),
       .info = input.info(),
       .clock = result.metadata.clock,
       .domain_name = [&input](DomainId domain) { return input.DomainName(domain); }});
  findings::KeepDomains(domains, found);
  const report::FindingsContext context{options.trace.path, result.metadata.clock};
  return options.format == "json" ? report::Dump(report::FindingsJson(found, context))
                                  : report::FindingsText(found, context, report::StdoutStyle());
}

// Returns how the text is laid out. Who names domains or sections wants to see them.
report::SummaryStyle StyleOf(const SummaryOptions& options) {
  const bool chosen = !options.sections.empty();
  return {.text = report::StdoutStyle(),
          .details = options.all,
          .chosen = chosen,
          .pcpus = options.pcpus || chosen,
          .vcpus = options.vcpus || chosen || !options.domains.empty()};
}

// Whether the host is seen to be wide before the trace is analysed, if that makes a difference.
bool LooksWide(const trace::TraceFile& trace, const SummaryOptions& options) {
  const report::SummaryStyle style = StyleOf(options);
  const bool shows_all = style.details || (style.pcpus && style.vcpus);
  if (options.format != "text" || options.findings || shows_all) return false;
  const size_t pcpus = trace.index().pcpus.size();
  if (report::IsWide(pcpus, 0)) return true;
  return report::IsWide(pcpus, trace::CountDomains(trace, report::kMostDomainsShown + 1));
}

// Returns what makes the analyses of a host: those of which something is shown.
analysis::MakeAnalyses AnalysesFor(const SummaryOptions& options,
                                   const report::SummarySelection& selection, bool wide) {
  if (options.findings) return [] { return findings::TraceAnalyses(findings::HypercallRule::kOn); };
  const analysis::GroupFilter wants = [text = options.format == "text", style = StyleOf(options),
                                       selection, wide](const analysis::GroupInfo& group) {
    return report::Keeps(selection, group) && (!text || report::TextMayShow(group, wide, style));
  };
  return [wants] { return analysis::AnalysesOf(wants); };
}

absl::StatusOr<analysis::AnalysisResult> Analyse(const trace::TraceFile& trace,
                                                 const analysis::TraceHints& hints,
                                                 const SummaryOptions& options,
                                                 const report::SummarySelection& selection,
                                                 unsigned threads) {
  const bool wide = LooksWide(trace, options);
  auto result =
      analysis::AnalyseTrace(trace, hints, AnalysesFor(options, selection, wide), threads);
  // What was seen may have been damaged.
  if (!result.ok() || !wide || report::IsWide(*result)) return result;
  return analysis::AnalyseTrace(trace, hints, AnalysesFor(options, selection, false), threads);
}

absl::Status Summarise(const SummaryOptions& options) {
  if (!options.store.url.empty()) {
    return SummariseStore({.store = options.store,
                           .format = options.format,
                           .sections = options.sections,
                           .domains = options.domains,
                           .by_vcpu = options.vcpus,
                           .details = options.all});
  }
  TakeMemoryInLargeSteps();
  const unsigned threads = LimitThreads(options.threads, kAnalysisThreads);
  XENOSCOPE_ASSIGN_OR_RETURN(const profile::TraceInput input, OpenTraceInput(options.trace));
  report::SummarySelection selection{{}, options.sections};
  XENOSCOPE_ASSIGN_OR_RETURN(selection.domains, ChooseDomains(input.info(), options.domains));
  XENOSCOPE_ASSIGN_OR_RETURN(const symbolizer::LoadedSymbols symbols,
                             LoadSymbols(options.symbols, input.recording));
  // Without any symbols a column of them would be a column of "[no symbols]".
  const bool named = input.recording || options.symbols.Given();
  const analysis::TraceHints hints{
      .clock = input.clock,
      .dialect = input.dialect,
      .resolver = named ? symbols.resolver.get() : nullptr,
      .guest_clocks = !options.findings && options.format != "csv"};  // CSV has tables only
  // Never freed: AnalysisResult::kept.
  static auto* const analysed = new absl::StatusOr<analysis::AnalysisResult>(
      Analyse(input.trace, hints, options, selection, threads));
  XENOSCOPE_RETURN_IF_ERROR(analysed->status());
  analysis::AnalysisResult& result = **analysed;
  if (const std::string note = input.MissingFigures(trace::AllFigures()); !note.empty()) {
    fmt::print(stderr, "xenoscope: {}\n", note);
  }
  for (const std::string& misfit : symbols.resolver->Mismatches()) {
    fmt::print(stderr, "xenoscope: {}\n", misfit);
  }
  std::set<DomainId> present;
  for (const analysis::DomainSection& domain : result.document.domains) {
    present.insert(domain.domain);
  }
  WarnOfAbsentDomains(selection.domains, present, "records");
  if (options.findings) return WriteStdout(FindingsOf(input, result, options, selection.domains));
  report::Select(selection, result.document);
  const auto names = [&](DomainId domain) { return input.DomainName(domain); };
  std::string text;
  if (options.format == "json") {
    nlohmann::ordered_json json = report::SummaryJson(result, names);
    json["trace"]["not_recorded"] = NotRecorded(input);
    text = report::Dump(json);
  } else if (options.format == "csv") {
    text = report::SummaryCsv(result.document);
  } else {
    text = report::SummaryText(result, names, StyleOf(options));
  }
  return WriteStdout(text);
}

}  // namespace

void AddSummary(Command program, CommandAction& run) {
  auto options = std::make_shared<SummaryOptions>();
  Command command = program.AddSubcommand(
      "summary", "Summarise runstates, VM exits and hypercalls of all vCPUs, like xenalyze -s");
  AddTraceOptions(command, options->trace);
  command.AddOption("--format", options->format, "Output format: text, json or csv")
      .OneOf({"text", "json", "csv"})
      .ShowDefault();
  AddThreadsOption(command, options->threads, kAnalysisThreads);
  command
      .AddOption("-d,--domain", options->domains, "Only these domains, by name or number (web1,2)")
      .ValueName(kDomainValue)
      .SplitAt(',')
      .OneWordEach();
  command
      .AddOption("--sections", options->sections,
                 "Only these sections, by their JSON keys (runstates,exits,hypercalls)")
      .SplitAt(',')
      .OneWordEach()
      .OneOf(SectionKeys())
      .ValueText("KEY,...");
  AddSymbolOptions(command, options->symbols);
  AddStoreOptions(command, options->store);
  command.AddFlag("--pcpu", options->pcpus, "Show tables of pCPUs also of a host with many");
  command.AddFlag("--vcpu", options->vcpus,
                  "Show tables of domains and vCPUs also of a host with many; of a store: rows of "
                  "vCPUs in place of domains");
  command
      .AddFlag("--findings", options->findings,
               "Instead of the summary, show what stands out: at most 10 statements, by the time "
               "that they concern. `report --findings` also has those that need samples")
      .Excludes("--sections");
  command.AddFlag("--all", options->all,
                  "Show all sections and all rows; json always contains them");
  command.SetFooter(Footer());
  command.SetCallback([options, &run] {
    if (options->findings && options->format == "csv") {
      ThrowUsageError("--findings", "goes with --format text or json only");
    }
    CheckStoreOptions(options->store);
    if (!options->store.url.empty()) {
      if (options->trace.path != kDefaultRecording) {
        ThrowUsageError("--from-store",
                        "takes the place of a recording; leave out " + options->trace.path);
      }
      if (options->findings) options->sections = {"findings"};
      CheckStoreSections(options->sections);
    }
    run = [options] { return Summarise(*options); };
  });
}

}  // namespace xenoscope::cli
