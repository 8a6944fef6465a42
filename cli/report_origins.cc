#include "cli/report_origins.h"

#include <map>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "correlate/profile.h"
#include "report/profile/origins_view.h"
#include "report/table/table_csv.h"
#include "report/table/table_json.h"
#include "report/table/table_text.h"

namespace xenoscope::cli {

absl::StatusOr<std::string> OriginsReport(const ProfileSource& source,
                                          const ProfileOptions& request, const std::string& format,
                                          report::TextStyle style, report::ProfileReport& out) {
  using correlate::Dimension;
  XENOSCOPE_RETURN_IF_ERROR(
      source.Profile(request,
                     {.by = {Dimension::kDomain, Dimension::kMode, Dimension::kProcess,
                             Dimension::kImage, Dimension::kAddress}},
                     out));
  using Key = std::tuple<DomainId, Mode, std::string, std::string, std::string, std::string>;
  std::map<Key, report::OriginRow> rows;
  for (const correlate::ProfileRow& row : out.result.rows) {
    symbolizer::SymbolOrigin origin =
        source.symbols().OriginOf(row.domain, row.mode, row.process, row.address);
    report::OriginRow& sum =
        rows[{row.domain, row.mode, row.image, origin.functions, origin.lines, origin.missing}];
    sum.samples += row.samples;
    sum.share += row.share;
    if (!sum.image.empty()) continue;
    sum.domain = DomainLabel(row.domain, source.DomainName(row.domain));
    sum.mode = row.mode;
    sum.image = row.image;
    sum.functions = std::move(origin.functions);
    sum.lines = std::move(origin.lines);
    sum.build_id = std::move(origin.build_id);
    sum.missing = std::move(origin.missing);
  }
  std::vector<report::OriginRow> listed;
  listed.reserve(rows.size());
  for (auto& [key, row] : rows) listed.push_back(std::move(row));
  const report::Table table = report::OriginsTable(std::move(listed));
  if (format == "csv") return report::ToCsv(table);
  if (format == "json") {
    nlohmann::ordered_json document;
    document["origins"] = report::ToJson(table);
    return report::Dump(document);
  }
  style.figures_first = true;
  return report::ToText(table, style);
}

}  // namespace xenoscope::cli
