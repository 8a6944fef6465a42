// Writes the points of `xenoscope timeline --scatter` as text, CSV or JSON, one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>

#include "analysis/scatter/scatter.h"
#include "base/tsc.h"

namespace xenoscope::report {

// A writer of points. CSV has the series, the seconds since the trace began, and the value in a
// column with the name of its kind (pcpu, runstate, cycles, address, value). Text has the same
// separated by blanks, JSON the same as arrays. Each call appends to `out`.
class ScatterRows {
 public:
  ScatterRows(std::string_view format, const analysis::ScatterInfo& info,
              const analysis::Scatter& scatter, const analysis::TraceMetadata& metadata);

  void Begin(std::string& out) const;
  void Point(uint64_t line, Tsc x, uint64_t y, std::string& out);
  void End(std::string& out) const;

 private:
  enum class Format : uint8_t { kText, kCsv, kJson };

  const std::string& Name(uint64_t line);

  Format format_;
  const analysis::ScatterInfo& info_;
  const analysis::Scatter& scatter_;
  const analysis::TraceMetadata& metadata_;
  std::unordered_map<uint64_t, std::string> names_;
  bool first_ = true;
};

}  // namespace xenoscope::report
