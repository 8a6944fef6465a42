// What an analysis finds in a small trace, as lines: for tests.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/run.h"
#include "tests/unit/analysis/run_one.h"
#include "tests/unit/trace/bytes_of_trace.h"
#include "trace/trace_file.h"

namespace xenoscope::analysis {

// The words of a RUNSTATE_CHANGE's number, and of the vCPU in it.
inline constexpr uint32_t kRunnableToRunning = 0x21101;
inline constexpr uint32_t kRunningToRunnable = 0x21011;
inline constexpr uint32_t kRunningToBlocked = 0x21021;
inline constexpr uint32_t kBlockedToRunnable = 0x21211;
inline constexpr uint32_t kD1V0 = 1U << 16;

// One pass of the analysis over the trace, of the vendor's exit reasons.
inline Result ResultOf(const trace::TraceBytes& bytes, MakeAnalysis make, trace::Vendor vendor) {
  const auto file = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  EXPECT_TRUE(file.ok());
  Known known;
  known.dialect.vendor = vendor;
  known.dialect.vendor_source = trace::DialectSource::kGiven;
  return RunOne(*file, known, make);
}

// "CPUID count 2, cycles 30", the parts below it indented; percentiles left out.
inline void AddLines(const Row& row, const std::string& indent, std::vector<std::string>& lines) {
  std::string line = indent + row.name;
  const char* separator = " ";
  for (const Figure& figure : row.figures) {
    if (figure.key.front() == 'p' && figure.unit == Unit::kCycles) continue;
    line += separator + figure.key + " ";
    line += std::visit([](const auto& value) { return fmt::format("{}", value); }, figure.value);
    separator = ", ";
  }
  lines.push_back(line);
  for (const Row& part : row.parts) AddLines(part, indent + "  ", lines);
}

inline std::vector<std::string> Lines(const Section& section, const std::string& group) {
  std::vector<std::string> lines;
  for (const Group& found : section.groups) {
    if (found.key != group) continue;
    for (const Row& row : found.rows) AddLines(row, "", lines);
  }
  return lines;
}

// The lines of a group of the trace's first vCPU.
inline std::vector<std::string> VcpuLines(const Result& result, const std::string& group) {
  EXPECT_FALSE(result.document.domains.empty());
  return Lines(result.document.domains.at(0).vcpus.at(0).section, group);
}

}  // namespace xenoscope::analysis
