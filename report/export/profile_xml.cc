#include "report/export/profile_xml.h"

#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <map>
#include <utility>
#include <vector>

#include "report/markup.h"

namespace xenoscope::report {
namespace {

using correlate::Dimension;
using correlate::ProfileRow;
using correlate::UnplacedReason;

template <typename... Args>
void Put(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

struct NodeSums {
  double samples = 0;
  double share = 0;
  double cycles = 0;
};

void Add(const ProfileRow& row, NodeSums& sums) {
  sums.samples += row.samples;
  sums.share += row.share;
  sums.cycles += row.cycles;
}

// Puts the count of sums. Shares of sums have no interval here.
void PutCount(std::string& out, const ProfileReport& report, const NodeSums& sums,
              const char* more) {
  Put(out, "<count share=\"{:.6f}\"{}", sums.share, more);
  if (report.is_time) Put(out, " cycles=\"{}\"", std::llround(sums.cycles));
  Put(out, ">{:.3f}</count>", sums.samples);
}

void PutSymbol(std::string& out, const ProfileReport& report, const ProfileRow& row) {
  out += "   <symbol";
  for (const Dimension dimension : report.by) {
    if (dimension == Dimension::kDomain || dimension == Dimension::kImage) continue;
    const std::string_view key =
        dimension == Dimension::kFunction ? std::string_view("name") : ToString(dimension);
    Put(out, " {}=\"{}\"", key, Escaped(DimensionText(report, row, dimension)));
  }
  out += '>';
  const std::string interval =
      fmt::format(" low=\"{:.6f}\" high=\"{:.6f}\"", row.interval.low, row.interval.high);
  PutCount(out, report, {row.samples, row.share, row.cycles}, interval.c_str());
  out += "</symbol>\n";
}

}  // namespace

std::string ProfileXml(const ProfileReport& report, const ProfileSelection& selection) {
  struct Binary {
    NodeSums sums;
    std::vector<const ProfileRow*> rows;
  };
  struct Domain {
    NodeSums sums;
    std::map<std::string, Binary> binaries;
  };
  std::map<DomainId, Domain> domains;
  for (const ProfileRow* row : SelectedRows(report, selection)) {
    Domain& domain = domains[row->domain];
    Binary& binary = domain.binaries[row->image];
    Add(*row, domain.sums);
    Add(*row, binary.sums);
    binary.rows.push_back(row);
  }
  const auto by = [&](Dimension dimension) {
    return std::find(report.by.begin(), report.by.end(), dimension) != report.by.end();
  };
  std::string out =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<profile schemaversion=\"1.0\" title=\"xenoscope report\">\n"
      " <program>xenoscope</program>\n";
  Put(out, " <setup><eventsetup eventname=\"{}\"/><cpu_hz>{}</cpu_hz></setup>\n",
      Escaped(report.event), report.clock.hz);
  Put(out, " <summarydata total=\"{}\" attributed=\"{}\" lost=\"{}\" damaged=\"{}\">\n",
      report.counts.samples, report.counts.Attributed(), report.lost_in_buffers, report.damaged);
  for (size_t i = 0; i < correlate::kUnplacedReasons; ++i) {
    Put(out, "  <remainder name=\"{}\">{}</remainder>\n", ToString(static_cast<UnplacedReason>(i)),
        report.counts.unplaced.at(i));
  }
  out += " </summarydata>\n";
  for (const auto& [id, domain] : domains) {
    if (by(Dimension::kDomain)) {
      Put(out, " <domain id=\"{}\" name=\"{}\">", id.value, Escaped(report.domain_name(id)));
      PutCount(out, report, domain.sums, "");
      out += '\n';
    }
    for (const auto& [image, binary] : domain.binaries) {
      Put(out, "  <binary name=\"{}\">", Escaped(image));
      PutCount(out, report, binary.sums, "");
      out += '\n';
      for (const ProfileRow* row : binary.rows) PutSymbol(out, report, *row);
      out += "  </binary>\n";
    }
    if (by(Dimension::kDomain)) out += " </domain>\n";
  }
  out += "</profile>\n";
  return out;
}

}  // namespace xenoscope::report
