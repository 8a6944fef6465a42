#include "report/timeline/scatter_rows.h"

#include <fmt/format.h>

#include <iterator>

namespace xenoscope::report {
namespace {

using analysis::ValueKind;

std::string_view ValueKey(const analysis::ScatterInfo& info) {
  switch (info.kind) {
    case ValueKind::kState:
      return "runstate";
    case ValueKind::kCycles:
      return "cycles";
    case ValueKind::kAddress:
      return "address";
    case ValueKind::kNumber:
      break;
  }
  return info.y_title == "pCPU" ? "pcpu" : "value";
}

}  // namespace

ScatterRows::ScatterRows(std::string_view format, const analysis::ScatterInfo& info,
                         const analysis::Scatter& scatter, const analysis::TraceMetadata& metadata)
    : format_(format == "csv"    ? Format::kCsv
              : format == "json" ? Format::kJson
                                 : Format::kText),
      info_(info),
      scatter_(scatter),
      metadata_(metadata) {}

const std::string& ScatterRows::Name(uint64_t line) {
  std::string& name = names_[line];
  if (name.empty()) name = scatter_.LineName(line);
  return name;
}

void ScatterRows::Begin(std::string& out) const {
  switch (format_) {
    case Format::kCsv:
      fmt::format_to(std::back_inserter(out), "series,seconds,{}\r\n", ValueKey(info_));
      break;
    case Format::kText:
      fmt::format_to(std::back_inserter(out), "{:<16} {:>14} {:>18}\n", "series", "seconds",
                     ValueKey(info_));
      break;
    case Format::kJson:
      fmt::format_to(std::back_inserter(out),
                     "{{\n\"scatter\": \"{}\",\n\"columns\": [\"series\", \"seconds\", \"{}\"],\n"
                     "\"cpu_hz\": {},\n\"cpu_hz_source\": \"{}\",\n\"points\": [",
                     info_.name, ValueKey(info_), metadata_.clock.hz,
                     ToString(metadata_.clock.source));
      break;
  }
}

void ScatterRows::Point(uint64_t line, Tsc x, uint64_t y, std::string& out) {
  const double seconds = metadata_.clock.Seconds(x - metadata_.range.begin);
  const bool address = info_.kind == ValueKind::kAddress;
  const std::string value = address ? fmt::format("0x{:x}", y)
                            : info_.kind == ValueKind::kState
                                ? fmt::format("{}", static_cast<int64_t>(y))
                                : fmt::format("{}", y);
  switch (format_) {
    case Format::kCsv:
      fmt::format_to(std::back_inserter(out), "{},{:.9f},{}\r\n", Name(line), seconds, value);
      break;
    case Format::kText:
      fmt::format_to(std::back_inserter(out), "{:<16} {:>14.9f} {:>18}\n", Name(line), seconds,
                     value);
      break;
    case Format::kJson:
      fmt::format_to(std::back_inserter(out), "{}\n[\"{}\", {:.9f}, {}{}{}]", first_ ? "" : ",",
                     Name(line), seconds, address ? "\"" : "", value, address ? "\"" : "");
      first_ = false;
      break;
  }
}

void ScatterRows::End(std::string& out) const {
  if (format_ == Format::kJson) out += "\n]\n}\n";
}

}  // namespace xenoscope::report
