#include "cli/report_explain.h"

#include <nlohmann/json.hpp>

#include <utility>

#include "base/error.h"
#include "report/table/table_json.h"

namespace xenoscope::cli {

absl::StatusOr<std::string> ExplainReport(const ProfileSource& source,
                                          const ProfileOptions& request,
                                          const report::ExplainSelection& selection,
                                          const std::string& format, report::TextStyle style,
                                          report::ProfileReport& out) {
  profile::ProfileColumns columns{.by = report::ExplainColumns(),
                                  .further_by = {report::ExplainSecondaryColumns()},
                                  .with_parts = true};
  XENOSCOPE_RETURN_IF_ERROR(source.Profile(request, std::move(columns), out));
  if (report::ExplainedRows(out, selection).empty()) {
    return NotFoundError(
        "{}: no samples in a function '{}'; `xenoscope report {} --by function` lists the "
        "functions with samples",
        request.input, selection.function, request.input);
  }
  if (format == "json") return report::Dump(report::ExplainJson(out, selection));
  style.figures_first = true;
  return report::ExplainText(out, selection, style);
}

}  // namespace xenoscope::cli
