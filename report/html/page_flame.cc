#include "report/html/page_flame.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/json_text.h"
#include "base/mode.h"
#include "base/string_interner.h"
#include "report/html/packed.h"
#include "report/markup.h"

namespace xenoscope::report {
namespace {

using correlate::Dimension;
using correlate::ProfileRow;
using nlohmann::ordered_json;

// The columns of every page.
constexpr std::array kColumns = {Dimension::kDomain, Dimension::kVcpu,  Dimension::kMode,
                                 Dimension::kExit,   Dimension::kImage, Dimension::kLine,
                                 Dimension::kStack};
constexpr size_t kMode = 2;
constexpr size_t kImage = 4;
constexpr size_t kLine = 5;
constexpr size_t kStack = 6;
static_assert(kColumns[kMode] == Dimension::kMode && kColumns[kImage] == Dimension::kImage);
static_assert(kColumns[kLine] == Dimension::kLine && kColumns[kStack] == Dimension::kStack);

// Columns that change how samples are placed and refined. A page has them if its report is by them:
// else its figures would not be those of the report. They are the details that small rows lose
// first.
constexpr std::array kOfReport = {Dimension::kPcpu,   Dimension::kWaiting,   Dimension::kWakeup,
                                  Dimension::kThread, Dimension::kContainer, Dimension::kProcess,
                                  Dimension::kBehalf};

// Samples over time are in multiples of this.
constexpr double kSampleUnit = 1.0 / 256;

// The place of StackFrame::kind in the numbers of frames; below it is the mode.
constexpr int kFrameKindShift = 2;

constexpr std::string_view kRest = "[others, each of a smaller share]";

using Key = std::vector<uint64_t>;  // by column: indices of texts, and of the stack
struct RowSums {
  double samples = 0;
  double cycles = 0;
  double share = 0;
  double variance = 0;
  std::map<uint64_t, double> over_time{};  // samples, by bin

  void Add(const RowSums& other) {
    samples += other.samples;
    cycles += other.cycles;
    share += other.share;
    variance += other.variance;
    for (const auto& [bin, amount] : other.over_time) over_time[bin] += amount;
  }
};
using Rows = std::map<Key, RowSums>;

std::set<Key> Largest(const Rows& rows, size_t max) {
  std::vector<const Rows::value_type*> sorted;
  for (const auto& row : rows) sorted.push_back(&row);
  std::ranges::stable_sort(sorted, std::ranges::greater(),
                           [](const auto* row) { return row->second.share; });
  if (sorted.size() > max) sorted.resize(max);
  std::set<Key> keys;
  for (const auto* row : sorted) keys.insert(row->first);
  return keys;
}

Key WithoutDetails(Key key, uint64_t rest) {
  std::fill(key.begin() + kColumns.size(), key.end(), rest);
  return key;
}
Key WithoutLine(Key key, uint64_t rest) {
  key = WithoutDetails(key, rest);
  key[kLine] = rest;
  return key;
}

// Sums the rows up by the keys that `fold` makes of theirs.
template <typename F>
Rows Folded(const Rows& rows, F fold) {
  Rows folded;
  for (const auto& [key, sums] : rows) folded[fold(key)].Add(sums);
  return folded;
}

// The stacks by the names of their functions and their modes, outermost first. Stacks with equal
// names are merged.
class NamedStacks {
 public:
  uint64_t Intern(std::vector<uint64_t> names_and_modes) {
    const auto [at, is_new] = index_.try_emplace(std::move(names_and_modes), index_.size());
    if (is_new) stacks_.push_back(&at->first);
    return at->second;
  }
  [[nodiscard]] const std::vector<uint64_t>& at(uint64_t number) const {
    return *stacks_.at(number);
  }

 private:
  std::map<std::vector<uint64_t>, uint64_t> index_;
  std::vector<const std::vector<uint64_t>*> stacks_;  // by number
};

// Numbers anew, from 0 on, what is asked for.
class Renumbering {
 public:
  uint64_t operator()(uint64_t old) {
    const auto [at, is_new] = numbers_.try_emplace(old, all_.size());
    if (is_new) all_.push_back(old);
    return at->second;
  }
  [[nodiscard]] const std::vector<uint64_t>& all() const { return all_; }

 private:
  absl::flat_hash_map<uint64_t, uint64_t> numbers_;
  std::vector<uint64_t> all_;  // by new number
};

// Gives each row its samples over time: its part of those with its vCPU, mode, exit and function.
class RowTimes {
 public:
  RowTimes(const ProfileReport& report, const correlate::ProfileResult& flame,
           const PageOverTime* over_time)
      : report_(report), flame_(flame) {
    if (over_time == nullptr) return;
    times_ = over_time->ByKey();
    for (const ProfileRow& row : flame.rows) samples_[KeyOf(row)] += row.samples;
  }

  void AddTo(const ProfileRow& row, std::map<uint64_t, double>& bins) const {
    if (times_.empty()) return;
    const PageOverTime::Key key = KeyOf(row);
    const auto times = times_.find(key);
    const double samples = samples_.at(key);
    if (times == times_.end() || samples <= 0) return;
    for (const correlate::BinAmount& each : times->second) {
      bins[each.bin] += each.amount * row.samples / samples;
    }
  }

 private:
  [[nodiscard]] PageOverTime::Key KeyOf(const ProfileRow& row) const {
    const correlate::Stack& stack = flame_.stacks.at(row.stack);
    std::string name;
    if (!stack.empty()) name = report_.function_of(stack.front().function).name;
    return {{row.domain, row.vcpu}, row.mode, PageOverTime::ExitOf(row.exit), name};
  }

  const ProfileReport& report_;
  const correlate::ProfileResult& flame_;
  PageOverTime::Times times_;
  absl::flat_hash_map<PageOverTime::Key, double> samples_;
};

// All rows of a profile by PageColumns.
class FlameRows {
 public:
  FlameRows(const ProfileReport& report, const correlate::ProfileResult& flame,
            const PageOverTime* over_time);
  // Returns the page's flame graph with at most `max` rows that are not folded, and with the texts
  // and stacks that its rows have.
  [[nodiscard]] absl::StatusOr<ordered_json> ToJson(Tsc zero, size_t max) const;

 private:
  // Returns the rows, of which those beyond the `max` largest of each kind are folded.
  [[nodiscard]] Rows Kept(size_t max) const;

  const PageOverTime* over_time_;
  std::vector<Dimension> columns_;
  StringInterner texts_;
  NamedStacks stacks_;
  Rows rows_;
  uint64_t rest_ = 0;                        // the text kRest
  std::map<uint64_t, uint64_t> rest_stack_;  // by the text of its mode
};

FlameRows::FlameRows(const ProfileReport& report, const correlate::ProfileResult& flame,
                     const PageOverTime* over_time)
    : over_time_(over_time), columns_(PageColumns(report.by)) {
  std::vector<uint64_t> stack_of;
  for (const correlate::Stack& stack : flame.stacks) {
    std::vector<uint64_t> names;
    const correlate::Stack outermost_first(stack.rbegin(), stack.rend());
    for (const correlate::StackFrame& frame : outermost_first) {
      names.push_back(
          texts_.Intern(Printable(FrameName(report, flame.inlined, flame.exits, frame))));
      names.push_back(static_cast<uint64_t>(frame.mode) | static_cast<uint64_t>(frame.kind)
                                                              << kFrameKindShift);
    }
    stack_of.push_back(stacks_.Intern(std::move(names)));
  }
  const RowTimes times(report, flame, over_time);
  for (const ProfileRow& row : flame.rows) {
    Key key;
    key.reserve(columns_.size());
    for (const Dimension column : columns_) {
      key.push_back(column == Dimension::kStack
                        ? stack_of.at(row.stack)
                        : texts_.Intern(Printable(DimensionText(report, row, column))));
    }
    RowSums& sums = rows_[key];
    sums.Add({row.samples, row.cycles, row.share, row.variance});
    times.AddTo(row, sums.over_time);
  }
  rest_ = texts_.Intern(kRest);
  for (const Mode mode : {Mode::kUser, Mode::kKernel, Mode::kXen}) {
    rest_stack_[texts_.Intern(ToString(mode))] =
        stacks_.Intern({rest_, static_cast<uint64_t>(mode)});
  }
}

Rows FlameRows::Kept(size_t max) const {
  const auto without_details = [this](const Key& key) { return WithoutDetails(key, rest_); };
  const auto without_line = [this](const Key& key) { return WithoutLine(key, rest_); };
  const std::set<Key> kept_wholes = Largest(rows_, max);
  const std::set<Key> kept_lines = Largest(Folded(rows_, without_details), max);
  const std::set<Key> kept_functions = Largest(Folded(rows_, without_line), max);
  return Folded(rows_, [&](const Key& whole) {
    const Key line = without_details(whole);
    Key function = without_line(whole);
    if (!kept_functions.contains(function)) {
      function[kImage] = rest_;
      function[kStack] = rest_stack_.at(function[kMode]);
      return function;
    }
    if (kept_wholes.contains(whole)) return whole;
    return kept_lines.contains(line) ? line : function;
  });
}

absl::StatusOr<ordered_json> FlameRows::ToJson(Tsc zero, size_t max) const {
  Renumbering text;
  Renumbering stack;
  ordered_json rows = ordered_json::array();
  OverTime row_times;
  for (const auto& [key, sums] : Kept(max)) {
    ordered_json row = ordered_json::array();
    for (size_t i = 0; i < key.size(); ++i)
      row.push_back(i == kStack ? stack(key[i]) : text(key[i]));
    row.push_back(Rounded(sums.samples));
    row.push_back(std::llround(sums.cycles));
    row.push_back(sums.variance);
    rows.push_back(std::move(row));
    std::vector<correlate::BinAmount>& bins = row_times.things.emplace_back();
    for (const auto& [bin, amount] : sums.over_time) bins.push_back({bin, amount});
  }
  ordered_json stacks = ordered_json::array();
  for (const uint64_t number : stack.all()) {
    std::vector<uint64_t> names = stacks_.at(number);
    for (size_t i = 0; i < names.size(); i += 2) names[i] = text(names[i]);
    stacks.push_back(std::move(names));
  }
  ordered_json strings = ordered_json::array();
  for (const uint64_t number : text.all()) strings.push_back(texts_.all()[number]);
  ordered_json names = ordered_json::array();
  for (const Dimension column : columns_) names.push_back(ToString(column));
  ordered_json json{{"columns", std::move(names)},
                    {"strings", std::move(strings)},
                    {"stacks", std::move(stacks)},
                    {"rows", std::move(rows)},
                    {"without_time", over_time_ == nullptr ? 1 : over_time_->WithoutTime()}};
  if (over_time_ == nullptr) return json;
  row_times.width = over_time_->width();
  XENOSCOPE_ASSIGN_OR_RETURN(json["over_time"], OverTimeJson(row_times, zero, kSampleUnit));
  return json;
}

}  // namespace

std::vector<Dimension> PageColumns(const std::vector<Dimension>& by) {
  std::vector<Dimension> columns(kColumns.begin(), kColumns.end());
  std::ranges::copy_if(kOfReport, std::back_inserter(columns), [&](Dimension dimension) {
    return std::ranges::find(by, dimension) != by.end();
  });
  return columns;
}

absl::StatusOr<ordered_json> PageFlame(const ProfileReport& report,
                                       const correlate::ProfileResult& flame,
                                       const PageOverTime* over_time, Tsc zero,
                                       PageFlameLimit limit) {
  const FlameRows all(report, flame, over_time);
  for (size_t rows = limit.rows;; rows /= 2) {
    XENOSCOPE_ASSIGN_OR_RETURN(ordered_json page, all.ToJson(zero, rows));
    if (rows <= 1 || JsonText(page).size() <= limit.bytes) return page;
  }
}

}  // namespace xenoscope::report
