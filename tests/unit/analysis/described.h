// What analyses find in a small trace, as lines to compare.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "analysis/run.h"
#include "tests/unit/analysis/run_one.h"
#include "tests/unit/trace/bytes_of_trace.h"

namespace xenoscope::analysis {

// At 1 GHz, so that a cycle is a nanosecond.
inline Result Analysed(const trace::TraceBytes& bytes, MakeAnalysis make) {
  const auto file = trace::TraceFile::FromBytes(bytes.bytes(), "test");
  EXPECT_TRUE(file.ok());
  return RunOne(*file, {Clock{1'000'000'000, ClockSource::kGiven}, {}}, make);
}

// "group/row/part key=value key=value", percentiles left out.
inline void AddLines(const std::string& path, const Row& row, std::vector<std::string>& lines) {
  std::string line = path + "/" + row.name;
  for (const Figure& figure : row.figures) {
    if (figure.key.starts_with("p") && figure.unit == Unit::kCycles) continue;
    if (const auto* whole = std::get_if<uint64_t>(&figure.value)) {
      line += fmt::format(" {}={}", figure.key, *whole);
    }
  }
  lines.push_back(line);
  for (const Row& part : row.parts) AddLines(path + "/" + row.name, part, lines);
}
inline std::vector<std::string> Lines(const Section& section) {
  std::vector<std::string> lines;
  for (const Group& group : section.groups) {
    for (const Row& row : group.rows) AddLines(group.key, row, lines);
  }
  return lines;
}

// Of the domain, or of one of its vCPUs; none when it is not described.
inline std::vector<std::string> DomainLines(const Result& result, uint16_t domain) {
  for (const DomainSection& section : result.document.domains) {
    if (section.domain.value == domain) return Lines(section.section);
  }
  return {};
}
inline std::vector<std::string> VcpuLines(const Result& result, uint16_t domain, uint32_t vcpu) {
  for (const DomainSection& section : result.document.domains) {
    if (section.domain.value != domain) continue;
    for (const VcpuSection& inner : section.vcpus) {
      if (inner.vcpu.value == vcpu) return Lines(inner.section);
    }
  }
  return {};
}

// Runstate changes, and a vCPU packed as in them.
inline constexpr uint32_t kRunnableToRunning = 0x21101;
inline constexpr uint32_t kRunningToRunnable = 0x21011;
inline constexpr uint32_t kRunningToBlocked = 0x21021;
inline constexpr uint32_t kBlockedToRunnable = 0x21211;
inline constexpr uint32_t kContinueRunning = 0x21002;
constexpr uint32_t Vcpu(uint32_t domain, uint32_t vcpu) { return domain << 16 | vcpu; }

}  // namespace xenoscope::analysis
