// What analyses have found, as data: named groups of rows, at three levels (the trace, each domain,
// each vCPU). report/ turns it into text, JSON or CSV; analyses know nothing of that.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "analysis/stat.h"
#include "base/ids.h"

namespace xenoscope::analysis {

// How a figure is to be read and shown.
enum class Unit : uint8_t { kCount, kBytes, kCycles, kFraction, kHex, kText };

struct Figure {
  std::string key;  // stable: the key in JSON and the column in CSV
  Unit unit = Unit::kCount;
  std::variant<uint64_t, double, std::string> value;

  bool operator==(const Figure&) const = default;
};

struct Row {
  std::string name;
  std::vector<Figure> figures;
  std::vector<Row> parts;  // a breakdown: "parts" in JSON, indented in text

  bool operator==(const Row&) const = default;

  Row& Add(std::string key, Unit unit, uint64_t value) {
    figures.push_back({std::move(key), unit, value});
    return *this;
  }
  Row& Add(std::string key, double fraction) {
    figures.push_back({std::move(key), Unit::kFraction, fraction});
    return *this;
  }
  Row& Add(std::string key, std::string text) {
    figures.push_back({std::move(key), Unit::kText, std::move(text)});
    return *this;
  }
  // count, cycles, p5, p50, p95
  Row& Add(const StatFigures& stat) {
    Add("count", Unit::kCount, stat.count);
    Add("cycles", Unit::kCycles, stat.cycles);
    Add("p5", Unit::kCycles, stat.p5);
    Add("p50", Unit::kCycles, stat.p50);
    return Add("p95", Unit::kCycles, stat.p95);
  }
};

// How text shows a group; JSON and CSV have all of them alike.
enum class Show : uint8_t {
  kTable,
  kRemainder,  // one line under the table before it: what is not in that
  kDetail,     // only when asked for everything: it repeats what other figures tell
  kLongList,   // the first rows, unless asked for everything; each has a count first
};

struct Group {
  std::string key;    // stable: the key in JSON and the table in CSV
  std::string title;  // for people
  std::vector<Row> rows;
  Show show = Show::kTable;

  bool operator==(const Group&) const = default;
};

// Groups in the order in which the analyses are registered. A group without rows is left out by the
// text and kept, as {}, by JSON.
struct Section {
  std::deque<Group> groups;

  bool operator==(const Section&) const = default;

  // The reference stays valid while more are added.
  Group& AddGroup(std::string key, std::string title, Show show = Show::kTable) {
    return groups.emplace_back(Group{std::move(key), std::move(title), {}, show});
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
