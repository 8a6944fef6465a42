#include "cli/store_page.h"

#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/error.h"
#include "base/resolver.h"
#include "report/html/page.h"
#include "report/html/page_flame.h"
#include "report/profile/profile_view.h"

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

}  // namespace

absl::StatusOr<std::string> StorePage(const StoreOptions& store, const std::vector<Dimension>& by,
                                      const std::vector<report::RowFilter>& filters,
                                      const std::vector<std::string>& domains,
                                      report::ProfileFormatOptions write) {
  report::ProfileReport shown;
  XENOSCOPE_RETURN_IF_ERROR(ProfileOfStore(store, by, shown));
  XENOSCOPE_ASSIGN_OR_RETURN(write.selection.domains, ChooseStoredDomains(shown, domains));
  report::ApplyRowFilters(filters, shown);
  // What the page can group by: all that a store has, and what filters need.
  std::vector<Dimension> columns = {Dimension::kDomain, Dimension::kVcpu,  Dimension::kMode,
                                    Dimension::kExit,   Dimension::kImage, Dimension::kFunction};
  report::AddFilterColumns(filters, columns);
  report::ProfileReport whole;
  XENOSCOPE_RETURN_IF_ERROR(ProfileOfStore(store, columns, whole));
  report::ApplyRowFilters(filters, whole);
  SetStacks(whole);
  nlohmann::ordered_json page = report::ProfilePage(shown, whole, whole.result, write);
  XENOSCOPE_ASSIGN_OR_RETURN(
      page["flame"], report::PageFlame(whole, whole.result, nullptr, Tsc(), report::kMaxPageRows));
  return report::ToPage(page);
}

}  // namespace xenoscope::cli
