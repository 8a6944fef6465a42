#include "cli/store_page.h"

#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <variant>

#include "absl/container/flat_hash_map.h"
#include "analysis/document.h"
#include "base/error.h"
#include "base/resolver.h"
#include "report/html/page.h"
#include "report/html/page_flame.h"
#include "report/markup.h"
#include "report/profile/profile_view.h"
#include "store/bounded_text.h"
#include "store/trace_totals.h"

namespace xenoscope::cli {
namespace {

using correlate::Dimension;

// Gives the functions of rows numbers, and each row the stack of its function.
void SetStacks(report::ProfileReport& report) {
  std::vector<Function> functions;
  absl::flat_hash_map<std::tuple<std::string, std::string, Mode>, uint32_t> stacks;
  correlate::ProfileResult& result = report.result;
  result.stacks.clear();
  for (correlate::ProfileRow& row : result.rows) {
    const auto next = static_cast<uint32_t>(functions.size());
    const auto [stack, is_new] = stacks.try_emplace({row.image, row.function, row.mode}, next);
    if (is_new) {
      functions.push_back({row.image, row.function, ""});
      correlate::StackFrame frame;
      frame.function = FunctionId{next};
      frame.mode = row.mode;
      result.stacks.push_back({frame});
    }
    row.stack = stack->second;
  }
  report.function_of = [functions = std::move(functions)](FunctionId id) -> const Function& {
    return functions.at(id.value);
  };
}

constexpr size_t kMaxFigureRows = 500;  // of a group

// Adds a row and its parts, the parts after it and one deeper. Returns how many are left out.
size_t AddFigures(const analysis::MetricRow& row, size_t depth, nlohmann::ordered_json& rows) {
  size_t left_out = 0;
  if (rows.size() < kMaxFigureRows) {
    nlohmann::ordered_json figures = nlohmann::ordered_json::array();
    for (const analysis::Metric& metric : row.metrics) {
      const auto* figure = std::get_if<uint64_t>(&metric.value);
      figures.push_back(figure == nullptr ? 0 : *figure);
    }
    rows.push_back({{"name", report::Printable(row.name)}, {"depth", depth}, {"figures", figures}});
  } else {
    ++left_out;
  }
  for (const analysis::MetricRow& part : row.parts) left_out += AddFigures(part, depth + 1, rows);
  return left_out;
}

// Returns what the slices' traces show: a table for each group.
nlohmann::ordered_json Traces(const analysis::Section& traces) {
  nlohmann::ordered_json out = nlohmann::ordered_json::array();
  for (const analysis::MetricGroup& group : traces.groups) {
    if (group.rows.empty()) continue;
    nlohmann::ordered_json columns = nlohmann::ordered_json::array();
    for (const analysis::Metric& metric : group.rows.front().metrics) {
      columns.push_back({{"name", metric.key == "cycles" ? "time" : metric.key},
                         {"is_time", metric.unit == analysis::MetricUnit::kCycles}});
    }
    nlohmann::ordered_json rows = nlohmann::ordered_json::array();
    size_t left_out = 0;
    for (const analysis::MetricRow& row : group.rows) left_out += AddFigures(row, 0, rows);
    out.push_back({{"title", group.title},
                   {"columns", std::move(columns)},
                   {"rows", std::move(rows)},
                   {"left_out", left_out}});
  }
  return out;
}

// Puts into the page what the traces of these domains show, of all if there are none.
absl::Status AddTraces(const StoreOptions& store, const std::vector<std::string>& domains,
                       nlohmann::ordered_json& page) {
  Clock clock;
  std::string note;
  XENOSCOPE_ASSIGN_OR_RETURN(const store::TraceTotals traces,
                             TraceTotalsOfStore(store, clock, note));
  if (traces.traced_slices() == 0) return absl::OkStatus();
  store::TraceTotals::View view;
  for (const std::string& domain : domains) view.domains.push_back(store::BoundedName(domain));
  page["traces"] = Traces(traces.Describe(view));
  page["traces_hz"] = clock.hz;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> StorePage(const StoreOptions& store, const std::vector<Dimension>& by,
                                      const std::vector<report::RowFilter>& filters,
                                      const std::vector<std::string>& domains,
                                      report::ProfileFormatOptions write) {
  report::ProfileReport shown;
  XENOSCOPE_RETURN_IF_ERROR(ProfileOfStore(store, {by}, shown));
  XENOSCOPE_ASSIGN_OR_RETURN(write.selection.domains, ChooseStoredDomains(shown, domains));
  XENOSCOPE_RETURN_IF_ERROR(report::ApplyRowFilters(filters, by, shown));
  // What the page can group by: all that a store has, and what filters need.
  std::vector<Dimension> columns = {Dimension::kDomain, Dimension::kVcpu,  Dimension::kMode,
                                    Dimension::kExit,   Dimension::kImage, Dimension::kFunction};
  report::AddFilterColumns(filters, columns);
  report::ProfileReport whole;
  // The page lists domains with what is chosen of them.
  XENOSCOPE_RETURN_IF_ERROR(
      ProfileOfStore(store, {columns, /*with_subtotals=*/!filters.empty(), filters}, whole));
  XENOSCOPE_RETURN_IF_ERROR(report::ApplyRowFilters(filters, columns, whole));
  SetStacks(whole);
  nlohmann::ordered_json page = report::ProfilePage(shown, whole, whole.result, write);
  XENOSCOPE_ASSIGN_OR_RETURN(page["flame"],
                             report::PageFlame(whole, whole.result, nullptr, Tsc(), {}));
  if (filters.empty()) XENOSCOPE_RETURN_IF_ERROR(AddTraces(store, domains, page));
  return report::ToPage(page);
}

}  // namespace xenoscope::cli
