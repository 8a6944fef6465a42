#include "report/profile/profile_format.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "report/export/flame_svg.h"
#include "report/export/folded.h"
#include "report/export/pprof.h"
#include "report/export/profile_xml.h"
#include "report/table/table_json.h"

namespace xenoscope::report {
namespace {

using correlate::Dimension;
using Options = ProfileFormatOptions;

absl::StatusOr<std::string> Text(const ProfileReport& report, const Options& options) {
  return ProfileText(report, options.selection, options.style);
}
absl::StatusOr<std::string> Json(const ProfileReport& report, const Options& options) {
  return Dump(ProfileJson(report, options.selection));
}
absl::StatusOr<std::string> Csv(const ProfileReport& report, const Options& options) {
  return ProfileCsv(report, options.selection);
}
absl::StatusOr<std::string> Xml(const ProfileReport& report, const Options& options) {
  return ProfileXml(report, options.selection);
}
absl::StatusOr<std::string> Folded(const ProfileReport& report, const Options& options) {
  return ToFolded(FlameLines(report, options.selection, options.weight));
}
absl::StatusOr<std::string> Svg(const ProfileReport& report, const Options& options) {
  return ToFlameSvg(FlameLines(report, options.selection, options.weight), options.weight,
                    options.title);
}
absl::StatusOr<std::string> Pprof(const ProfileReport& report, const Options& options) {
  return ProfilePprof(report, options.selection, options.roots);
}

constexpr std::string_view kByFunction = "domain,mode,function";

constexpr ProfileFormat kFormats[] = {
    {.name = "text",
     .about = "tables for people",
     .by = kByFunction,
     .ratios = true,
     .write = Text},
    {.name = "json",
     .about = "everything, with stable keys",
     .by = kByFunction,
     .ratios = true,
     .write = Json},
    {.name = "csv", .about = "the rows alone", .by = kByFunction, .ratios = true, .write = Csv},
    {.name = "xml", .about = "as opreport -X", .by = "domain,mode,image,function", .write = Xml},
    {.name = "folded",
     .about = "one stack a line, for flamegraph.pl",
     .by = kByFunction,
     .stacks = true,
     .write = Folded},
    {.name = "svg", .about = "a flame graph", .by = kByFunction, .stacks = true, .write = Svg},
    {.name = kPprof,
     .about = "profile.proto for pprof",
     .by = "domain,vcpu,pcpu,mode,exit,process,function",
     .stacks = true,
     .addresses = true,
     .binary = true,
     .write = Pprof},
    {.name = kHtml,
     .about = "a web page with flame graph, tables, VM exits and timeline",
     .by = kByFunction},
    {.name = kPerfetto,
     .about = "samples and trace on one timeline for ui.perfetto.dev",
     .by = "domain,stack",
     .binary = true,
     .timeline = true},
    {.name = kFirefox,
     .about = "samples and VM exits of each vCPU for profiler.firefox.com",
     .by = "domain,stack",
     .timeline = true},
};

}  // namespace

std::span<const ProfileFormat> ProfileFormats() { return kFormats; }

const ProfileFormat* FindProfileFormat(std::string_view name) {
  const auto* const found = std::ranges::find(kFormats, name, &ProfileFormat::name);
  return found == std::end(kFormats) ? nullptr : found;
}

std::vector<Dimension> ColumnsFor(const ProfileFormat& format, std::vector<Dimension> by) {
  const auto has = [&](Dimension dimension) {
    return std::ranges::find(by, dimension) != by.end();
  };
  if (!format.stacks) return by;
  std::ranges::replace(by, Dimension::kFunction, Dimension::kStack);
  if (format.addresses) {
    // Different code can lie at the same address; these columns distinguish it.
    for (const Dimension dimension :
         {Dimension::kDomain, Dimension::kProcess, Dimension::kStack, Dimension::kAddress}) {
      if (!has(dimension)) by.push_back(dimension);
    }
  }
  return by;
}

}  // namespace xenoscope::report
