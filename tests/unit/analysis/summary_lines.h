// The results of analyses of a small trace, as lines to compare.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/analyse_trace.h"
#include "tests/unit/analysis/analyse_one.h"
#include "tests/unit/trace/trace_builder.h"

namespace xenoscope::analysis {

using trace::kBlockedToRunnable;
using trace::kContinueRunning;
using trace::kD1V0;
using trace::kRunnableToRunning;
using trace::kRunningToBlocked;
using trace::kRunningToRunnable;
using trace::Vcpu;

// Analyses the trace in one pass, at 1 GHz: a cycle is a nanosecond.
inline AnalysisResult Analysed(const trace::TraceBuilder& bytes, MakeAnalysis make,
                               trace::Vendor vendor = trace::Vendor::kUnknown,
                               Resolver* resolver = nullptr) {
  const auto file = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  EXPECT_TRUE(file.ok());
  TraceHints hints;
  hints.clock = Clock{1'000'000'000, ClockSource::kGiven};
  hints.resolver = resolver;
  hints.dialect.vendor = vendor;
  if (vendor != trace::Vendor::kUnknown) {
    hints.dialect.vendor_source = trace::DialectSource::kGiven;
  }
  return AnalyseOne(*file, hints, make);
}

// Adds "group/row/part key=value key=value", without percentiles and fractions.
inline void AddLines(const std::string& path, const MetricRow& row,
                     std::vector<std::string>& lines) {
  std::string line = path + "/" + row.name;
  for (const Metric& figure : row.metrics) {
    if (figure.key.starts_with("p") && figure.unit == MetricUnit::kCycles) continue;
    if (figure.unit == MetricUnit::kFraction) continue;
    line += " " + figure.key + "=";
    line += std::visit([](const auto& value) { return fmt::format("{}", value); }, figure.value);
  }
  lines.push_back(line);
  for (const MetricRow& part : row.parts) AddLines(path + "/" + row.name, part, lines);
}
// Returns the lines of all groups, or of one.
inline std::vector<std::string> Lines(const Section& section, std::string_view wanted = {}) {
  std::vector<std::string> lines;
  for (const MetricGroup& group : section.groups) {
    if (!wanted.empty() && group.key != wanted) continue;
    for (const MetricRow& row : group.rows) AddLines(group.key, row, lines);
  }
  return lines;
}

// Returns the lines of the domain, or of one of its vCPUs; none when it is not described.
inline std::vector<std::string> DomainLines(const AnalysisResult& result, uint16_t domain) {
  for (const DomainSection& section : result.document.domains) {
    if (section.domain.value == domain) return Lines(section.section);
  }
  return {};
}
inline std::vector<std::string> VcpuLines(const AnalysisResult& result, uint16_t domain,
                                          uint32_t vcpu, std::string_view group = {}) {
  for (const DomainSection& section : result.document.domains) {
    if (section.domain.value != domain) continue;
    for (const VcpuSection& inner : section.vcpus) {
      if (inner.vcpu.value == vcpu) return Lines(inner.section, group);
    }
  }
  return {};
}

}  // namespace xenoscope::analysis
