#include "report/profile/origins_view.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace xenoscope::report {

Table OriginsTable(std::vector<OriginRow> rows) {
  std::ranges::stable_sort(rows, std::ranges::greater(), &OriginRow::samples);
  Table table;
  table.columns = {{"samples", "samples", ColumnUnit::kCount},
                   {"share", "share", ColumnUnit::kShare},
                   {"domain", "domain", ColumnUnit::kText},
                   {"mode", "mode", ColumnUnit::kText},
                   {"image", "image", ColumnUnit::kText},
                   {"functions", "functions from", ColumnUnit::kText},
                   {"lines", "lines from", ColumnUnit::kText},
                   {"build_id", "build-id", ColumnUnit::kText},
                   {"missing", "missing", ColumnUnit::kText, Shorten::kEnd}};
  double named = 0;
  double with_line = 0;
  double all = 0;
  double all_shares = 0;
  for (const OriginRow& row : rows) {
    all += row.samples;
    all_shares += row.share;
    if (!row.functions.empty()) named += row.samples;
    if (!row.lines.empty()) with_line += row.samples;
    table.AddRow({row.samples, row.share, row.domain, std::string(ToString(row.mode)), row.image,
                  row.functions, row.lines, row.build_id, row.missing});
  }
  const auto footer = [&](double samples, std::string_view what) {
    const double share = all > 0 ? samples / all * all_shares : 0;
    table.footers.push_back({{samples, share, std::string(what), {}, {}, {}, {}, {}, {}}});
  };
  footer(named, "with a function");
  footer(with_line, "with a line");
  footer(all, "total");
  return table;
}

}  // namespace xenoscope::report
