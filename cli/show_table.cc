#include "cli/show_table.h"

#include <nlohmann/json.hpp>

#include "cli/output.h"
#include "report/table/table_csv.h"
#include "report/table/table_json.h"
#include "report/table/table_text.h"
#include "report/terminal.h"

namespace xenoscope::cli {

absl::Status ShowTable(const report::Table& table, const std::string& format) {
  if (format == "text") return WriteStdout(report::ToText(table, report::StdoutStyle()));
  if (format == "csv") return WriteStdout(report::ToCsv(table));
  return WriteStdout(report::Dump(report::ToJson(table)));
}

}  // namespace xenoscope::cli
