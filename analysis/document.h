// The document of analyses: named groups of rows, at three levels (the trace, each domain, each
// vCPU). report/ turns it into text, JSON or CSV; analyses know nothing of formats.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/stat.h"
#include "base/ids.h"

namespace xenoscope::analysis {

// The unit of a figure, which decides how it is shown.
enum class MetricUnit : uint8_t { kCount, kBytes, kCycles, kFraction, kHex, kText };

struct Metric {
  std::string key;  // stable: key in JSON and column in CSV
  MetricUnit unit = MetricUnit::kCount;
  std::variant<uint64_t, double, std::string> value;

  bool operator==(const Metric&) const = default;
};

struct MetricRow {
  std::string name;
  std::vector<Metric> metrics;
  std::vector<MetricRow> parts;  // rows of a breakdown: "parts" in JSON, indented in text

  bool operator==(const MetricRow&) const = default;

  MetricRow& Add(std::string key, MetricUnit unit, uint64_t value) {
    metrics.push_back({std::move(key), unit, value});
    return *this;
  }
  MetricRow& Add(std::string key, double fraction) {
    metrics.push_back({std::move(key), MetricUnit::kFraction, fraction});
    return *this;
  }
  MetricRow& Add(std::string key, std::string text) {
    metrics.push_back({std::move(key), MetricUnit::kText, std::move(text)});
    return *this;
  }
  // Adds the columns count, cycles, p5, p50 and p95; lengths are in cycles.
  MetricRow& Add(const StatSummary& stat) {
    Add("count", MetricUnit::kCount, stat.count);
    Add("cycles", MetricUnit::kCycles, stat.cycles);
    Add("p5", MetricUnit::kCycles, stat.p5);
    Add("p50", MetricUnit::kCycles, stat.p50);
    return Add("p95", MetricUnit::kCycles, stat.p95);
  }
  // Adds the columns count and cycles.
  MetricRow& Add(const Totals& totals) {
    Add("count", MetricUnit::kCount, totals.count());
    return Add("cycles", MetricUnit::kCycles, totals.cycles());
  }
};

// The way text shows a group; JSON and CSV show all groups alike.
enum class GroupLayout : uint8_t {
  kTable,
  kRemainder,  // one line under the table before it: what that table leaves out
  kDetail,     // shown only when everything is asked for: it repeats what other figures say
  kLongList,   // first rows only, unless everything is shown; each row's first figure is a count
  kRanked,     // as kLongList, by the first figure; fractions are of the row's first figure
};

// What a section describes.
enum class SectionLevel : uint8_t { kTrace, kDomain, kVcpu };

// What a group of the whole trace has a row or a part for each of, or whose tables leave out what
// it counts. The text of a host with many pCPUs or domains leaves out the first two, unless they
// are asked for.
enum class RowSubject : uint8_t { kPcpus, kVcpus, kDomains, kOther };

// A kind of group, declared once by its analysis: `summary -h` lists all of them.
struct GroupInfo {
  std::string_view key;    // stable: key in JSON, table in CSV, word of --sections
  std::string_view title;  // heading in text
  SectionLevel level = SectionLevel::kTrace;
  GroupLayout layout = GroupLayout::kTable;
  RowSubject subject = RowSubject::kOther;

  bool operator==(const GroupInfo&) const = default;
};

struct MetricGroup {
  std::string key;    // as in GroupInfo
  std::string title;  // as in GroupInfo
  std::vector<MetricRow> rows;
  GroupLayout layout = GroupLayout::kTable;
  RowSubject subject = RowSubject::kOther;

  bool operator==(const MetricGroup&) const = default;
};

// A list of groups, in the order in which the analyses are registered. Text leaves out a group
// without rows; JSON keeps it as {}.
struct Section {
  std::deque<MetricGroup> groups;

  bool operator==(const Section&) const = default;

  // Returns a reference that stays valid while more groups are added.
  MetricGroup& AddGroup(const GroupInfo& info) {
    return groups.emplace_back(
        MetricGroup{std::string(info.key), std::string(info.title), {}, info.layout, info.subject});
  }
};

struct VcpuSection {
  VcpuId vcpu;
  Section section;

  bool operator==(const VcpuSection&) const = default;
};

struct DomainSection {
  DomainId domain;
  Section section;
  std::vector<VcpuSection> vcpus;

  bool operator==(const DomainSection&) const = default;
};

struct Document {
  Section trace;
  std::vector<DomainSection> domains;

  bool operator==(const Document&) const = default;
};

}  // namespace xenoscope::analysis
