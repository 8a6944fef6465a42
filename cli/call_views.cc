#include "cli/call_views.h"

#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>

#include "base/error.h"
#include "cli/show_table.h"
#include "report/threads/thread_words.h"
#include "symbolizer/load.h"

namespace xenoscope::cli {

report::CallForest::NameOf KernelFunctionNames(Resolver& symbols, DomainId domain) {
  return [&symbols, domain](Address address) {
    const Function& function = symbols.Describe(symbols.Resolve(domain, Mode::kKernel, address));
    if (!function.unresolved.empty()) return fmt::format("{:#x}", address);
    const bool is_of_module = function.image.starts_with('[');
    return is_of_module ? function.name + " " + function.image : function.name;
  };
}

absl::StatusOr<report::CallGroups> AddCallsOfThreads(
    const std::vector<guests::ThreadStates>& domains, const recording::Recording& recording,
    const report::ThreadsOptions& shown, report::CallForest& forest) {
  XENOSCOPE_ASSIGN_OR_RETURN(
      const symbolizer::LoadedSymbols symbols,
      symbolizer::LoadSymbols(symbolizer::SourcesInRecording(recording.path())));
  // ThreadWords keeps a reference.
  const std::function<std::string(DomainId)> name_of = [&recording](DomainId domain) {
    return recording.info().NameOf(domain);
  };
  const report::ThreadWords words(name_of, shown);
  report::CallGroups groups{.columns = words.Columns(), .words = {}};
  std::map<report::ThreadKey, size_t> group_of;
  for (const guests::ThreadStates& domain : domains) {
    const std::string name = DomainLabel(domain.domain(), name_of(domain.domain()));
    WarnOfCalls(name, domain.calls());
    forest.Add(domain.calls().nodes(), KernelFunctionNames(*symbols.resolver, domain.domain()),
               [&](size_t thread, uint32_t /*part*/) {
                 const report::ThreadKey key =
                     report::KeyOf(domain, domain.threads()[thread], shown.by);
                 const auto [found, is_new] = group_of.try_emplace(key, groups.words.size());
                 if (is_new) groups.words.push_back(words.Of(key));
                 return std::optional(found->second);
               });
  }
  if (groups.words.empty()) {
    return NotFoundError("{} has no calls of functions: record with --threads --guest-functions",
                         recording.path());
  }
  return groups;
}

absl::Status ShowCalls(const report::CallForest& forest, const report::CallGroups& groups,
                       const CallViewOptions& options, Clock clock) {
  const bool text = options.format == "text";
  const report::CallsOptions shown{.clock = clock,
                                   .text = text,
                                   .longest_first = options.longest_first,
                                   .limit = text ? options.limit : 0};
  const report::Table table = options.call_tree ? report::CallTreeTable(forest, groups, shown)
                                                : report::CallsTable(forest, groups, shown);
  return ShowTable(table, options.format);
}

void WarnOfCalls(std::string_view name, const guests::CallTrees& calls) {
  uint64_t all = 0;
  uint64_t cut = 0;
  uint64_t counted = 0;
  for (const guests::CallNode& node : calls.nodes()) {
    all += node.calls + node.cut + node.counted;
    cut += node.cut;
    counted += node.counted;
  }
  if (cut > 0) {
    fmt::print(stderr,
               "xenoscope: {}: of {} calls of functions {} are cut: their begin or end is not "
               "known, nor their time, but for that of calls within them\n",
               name, all, cut);
  }
  if (counted > 0) {
    fmt::print(stderr,
               "xenoscope: {}: its kernel recorded no ends of {} calls of functions: they are "
               "counted, with their callers, and have no times\n",
               name, counted);
  }
  if (calls.left_out() > 0) {
    fmt::print(stderr,
               "xenoscope: {}: {} calls of functions are left out: there were more of different "
               "callers, or more within each other, than can be kept\n",
               name, calls.left_out());
  }
}

}  // namespace xenoscope::cli
