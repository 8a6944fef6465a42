#include "symbolizer/unwind/unwind_table.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "base/error.h"
#include "symbolizer/cached_table.h"
#include "symbolizer/unwind/orc_rules.h"

namespace xenoscope::symbolizer {
namespace {

constexpr CachedTableKind kKind = {
    {'X', 'E', 'N', 'O', 'U', 'N', 'W', 'D'}, 1, "a table for unwinding"};

// Limit of steps for any file, in addition to those for its size: instructions, and bytes to store.
constexpr uint64_t kBaseSteps = 1'000'000;
constexpr uint64_t kStepsPerByte = 4;

template <typename T>
std::string_view TextOf(const std::vector<T>& items) {
  return AsText(std::as_bytes(std::span(items)));
}

// The maker of a table.
class Maker {
 public:
  void Add(const CfiFunction& function, WorkLimit& limit) {
    Range range{function.begin, function.end, rows_at_.size(), 0};
    const uint8_t flags = function.common->is_signal_frame ? UnwindRow::kSignalFrame : uint8_t{0};
    RunCfi(function, limit, [&](Address begin, const CfiRules* rules) {
      const uint64_t before = Work();
      rows_at_.emplace_back(begin, RowOf(rules, flags));
      // What a file makes the table store, and expressions that it repeats in each row, count too.
      limit.Take(Work() - before);
    });
    range.count = rows_at_.size() - range.first;
    ranges_.push_back(range);
  }

  // Adds what holds from each entry to the next one; the last one only ends the one before.
  void Add(std::span<const OrcEntry> entries) {
    ranges_.push_back(
        {entries.front().begin, entries.back().begin, rows_at_.size(), entries.size()});
    for (const OrcEntry& entry : entries) rows_at_.emplace_back(entry.begin, RowOf(entry));
  }

  // Ends a section: the next ones count where it has no function.
  void EndSection() {
    std::ranges::stable_sort(ranges_, {}, &Range::begin);
    std::vector<Range> sections = std::exchange(ranges_, {});
    Address end = 0;
    for (Range& range : sections) {
      range.begin = std::max(range.begin, end);
      if (range.begin >= range.end) continue;
      end = range.end;
      AddWhereFree(range);
    }
    settled_.insert(settled_.end(), added_.begin(), added_.end());
    added_.clear();
    std::ranges::sort(settled_, {}, &Range::begin);
  }

  std::string Finish() {
    std::vector<Address> starts = {0};
    std::vector<uint32_t> owners = {UnwindTable::kNoRow};
    const auto begin_range = [&](Address at, uint32_t row) {
      if (starts.back() == at) {
        owners.back() = row;
      } else if (owners.back() != row) {
        starts.push_back(at);
        owners.push_back(row);
      }
    };
    for (const Range& range : settled_) {
      const auto rows = std::span(rows_at_).subspan(range.first, range.count);
      auto row = std::ranges::upper_bound(rows, range.begin, {}, &RowAt::first);
      // The row that holds at the start of the range may begin before it.
      if (row != rows.begin()) --row;
      for (; row != rows.end() && row->first < range.end; ++row) {
        begin_range(std::max(row->first, range.begin), row->second);
      }
      begin_range(range.end, UnwindTable::kNoRow);
    }
    return MakeCachedTable(
        kKind, {starts.size(), rows_.size(), rules_.size(), expressions_.size()},
        std::array<Bytes, 5>{std::as_bytes(std::span(starts)), std::as_bytes(std::span(owners)),
                             std::as_bytes(std::span(rows_)), std::as_bytes(std::span(rules_)),
                             AsBytes(expressions_)});
  }

 private:
  using RowAt = std::pair<Address, uint32_t>;  // where it begins, and its number

  // Code at [begin, end), whose rows are rows_at_[first, first + count).
  struct Range {
    Address begin = 0;
    Address end = 0;
    size_t first = 0;
    size_t count = 0;
  };

  // Bytes that are stored, and bytes of expressions, of which as many are looked up in the time of
  // one step.
  [[nodiscard]] uint64_t Work() const {
    constexpr uint64_t kLookedUpAStep = 16;
    return rows_.size() * sizeof(UnwindRow) + rules_.size() * sizeof(UnwindRule) +
           expressions_.size() + looked_up_ / kLookedUpAStep;
  }

  // Adds the parts of the range that no earlier section has. Ranges come in order.
  void AddWhereFree(Range range) {
    auto next = std::ranges::upper_bound(settled_, range.begin, {}, &Range::end);
    for (; next != settled_.end() && next->begin < range.end; ++next) {
      if (range.begin < next->begin) {
        Range part = range;
        part.end = next->begin;
        added_.push_back(part);
      }
      range.begin = next->end;
    }
    if (range.begin < range.end) added_.push_back(range);
  }

  uint32_t RowOf(const OrcEntry& entry) {
    if (entry.type == OrcType::kUndefined) return UnwindTable::kNoRow;
    OrcEntry without_place = entry;
    without_place.begin = 0;
    const auto [known, is_new] = orc_rows_.try_emplace(without_place, 0);
    if (is_new) {
      const bool registers =
          entry.type == OrcType::kRegisters || entry.type == OrcType::kPartialRegisters;
      const OrcRules of(entry);
      known->second = RowOf(&of.rules(), registers ? UnwindRow::kRegisters : uint8_t{0});
    }
    return known->second;
  }

  uint32_t RowOf(const CfiRules* rules, uint8_t flags) {
    rules_of_row_.clear();
    UnwindRow row;
    if (rules == nullptr || !Fill(*rules, row)) {
      rules_of_row_.clear();
      row = {};
      row.flags = UnwindRow::kBad;
    }
    row.flags |= flags;
    row.rules = static_cast<uint8_t>(rules_of_row_.size());
    row.first_rule = FirstRule();
    const std::string_view key = AsText(std::as_bytes(std::span(&row, 1)));
    const auto [known, is_new] =
        row_numbers_.try_emplace(std::string(key), static_cast<uint32_t>(rows_.size()));
    if (is_new) rows_.push_back(row);
    return known->second;
  }

  // Stores rules_of_row_, unless the same ones are there, and returns the number of the first.
  uint32_t FirstRule() {
    const auto [known, is_new] = first_rules_.try_emplace(std::string(TextOf(rules_of_row_)),
                                                          static_cast<uint32_t>(rules_.size()));
    if (is_new) rules_.insert(rules_.end(), rules_of_row_.begin(), rules_of_row_.end());
    return known->second;
  }

  bool Fill(const CfiRules& rules, UnwindRow& row) {
    if (!rules.has_cfa) return false;
    row.cfa_register = rules.cfa_register;
    if (rules.cfa_expression.empty()) {
      if (!Fits(rules.cfa_offset)) return false;
      row.cfa_value = static_cast<int32_t>(rules.cfa_offset);
    } else {
      row.flags |= UnwindRow::kExpression;
      row.cfa_register = 0;
      row.cfa_size = static_cast<uint32_t>(rules.cfa_expression.size());
      if (!Keep(rules.cfa_expression, row.cfa_value)) return false;
    }
    for (size_t i = 0; i < rules.registers.size(); ++i) {
      const CfiRules::Rule& of = rules.registers.at(i);
      if (of.kind == RuleKind::kSameValue) continue;
      UnwindRule rule{static_cast<uint8_t>(i), of.kind, 0, 0};
      if (of.kind == RuleKind::kExpression || of.kind == RuleKind::kValueExpression) {
        rule.size = static_cast<uint16_t>(of.expression.size());
        if (!Keep(of.expression, rule.value)) return false;
      } else {
        if (!Fits(of.value)) return false;
        rule.value = static_cast<int32_t>(of.value);
      }
      rules_of_row_.push_back(rule);
    }
    return true;
  }

  static bool Fits(int64_t value) {
    return value >= std::numeric_limits<int32_t>::min() &&
           value <= std::numeric_limits<int32_t>::max();
  }

  // Stores the expression, unless it is there already, and sets its place.
  bool Keep(Bytes expression, int32_t& at) {
    if (expression.size() > std::numeric_limits<uint16_t>::max() ||
        !Fits(static_cast<int64_t>(expressions_.size() + expression.size()))) {
      return false;
    }
    looked_up_ += expression.size();
    const auto [known, is_new] = kept_.try_emplace(std::string(AsText(expression)),
                                                   static_cast<int32_t>(expressions_.size()));
    if (is_new) expressions_ += AsText(expression);
    at = known->second;
    return true;
  }

  std::vector<RowAt> rows_at_;
  std::vector<Range> ranges_;   // of this section
  std::vector<Range> added_;    // of this section, where earlier ones have none
  std::vector<Range> settled_;  // of the sections before, in order, disjoint
  std::vector<UnwindRow> rows_;
  std::vector<UnwindRule> rules_;
  std::vector<UnwindRule> rules_of_row_;
  std::string expressions_;
  uint64_t looked_up_ = 0;  // bytes of expressions
  absl::flat_hash_map<std::string, uint32_t> row_numbers_;
  absl::flat_hash_map<OrcEntry, uint32_t> orc_rows_;  // by the entry without its address
  absl::flat_hash_map<std::string, uint32_t> first_rules_;
  absl::flat_hash_map<std::string, int32_t> kept_;
};

}  // namespace

absl::StatusOr<UnwindTable> UnwindTable::Open(Bytes bytes) {
  XENOSCOPE_ASSIGN_OR_RETURN(CachedTable cached, CachedTable::Open(bytes, kKind));
  const auto [range_count, row_count, rule_count, expression_bytes] = cached.counts();
  const auto starts = cached.Take(range_count, sizeof(Address));
  const auto owners = cached.Take(range_count, sizeof(uint32_t));
  const auto rows = cached.Take(row_count, sizeof(UnwindRow));
  const auto rules = cached.Take(rule_count, sizeof(UnwindRule));
  const Bytes rest = cached.rest();
  if (!starts || !owners || !rows || !rules || rest.size() != expression_bytes ||
      row_count >= kNoRow) {
    return InvalidError("it is cut off");
  }
  UnwindTable table;
  table.ranges_ = range_count;
  table.starts_ = *starts;
  table.owners_ = *owners;
  table.rows_ = *rows;
  table.rules_ = *rules;
  table.expressions_ = rest;
  for (uint64_t i = 0; i < table.ranges_; ++i) {
    const bool ascending = i == 0 ? table.StartAt(0) == 0 : table.StartAt(i - 1) < table.StartAt(i);
    const uint32_t owner = table.OwnerAt(i);
    if (!ascending || (owner != kNoRow && owner >= row_count)) {
      return InvalidError("its range {} is damaged", i);
    }
  }
  if (table.ranges_ == 0) return InvalidError("it is empty");
  if (!table.RowsAreValid()) return InvalidError("its rows are damaged");
  return table;
}

bool UnwindTable::RowsAreValid() const {
  for (uint64_t i = 0; i < rows_.size() / sizeof(UnwindRow); ++i) {
    const UnwindRow row = RowAt(static_cast<uint32_t>(i));
    const bool has_rules = Slice(rules_, uint64_t{row.first_rule} * sizeof(UnwindRule),
                                 uint64_t{row.rules} * sizeof(UnwindRule))
                               .has_value();
    if (!has_rules || row.cfa_register >= kUserRegisters) return false;
    if ((row.flags & UnwindRow::kExpression) != 0 &&
        !Slice(expressions_, static_cast<uint32_t>(row.cfa_value), row.cfa_size)) {
      return false;
    }
  }
  for (uint64_t i = 0; i < rules_.size() / sizeof(UnwindRule); ++i) {
    const auto rule = LoadUnchecked<UnwindRule>(rules_.data() + i * sizeof(UnwindRule));
    if (rule.column >= kUserRegisters || rule.kind > RuleKind::kValueExpression) return false;
    const bool is_expression =
        rule.kind == RuleKind::kExpression || rule.kind == RuleKind::kValueExpression;
    if (is_expression && !Slice(expressions_, static_cast<uint32_t>(rule.value), rule.size)) {
      return false;
    }
    if (rule.kind == RuleKind::kRegister && static_cast<uint32_t>(rule.value) >= kUserRegisters) {
      return false;
    }
  }
  return true;
}

uint32_t UnwindTable::Find(Address address) const {
  uint64_t begin = 0;  // the first range begins at 0
  uint64_t end = ranges_;
  if (end == 0) return kNoRow;
  while (end - begin > 1) {
    const uint64_t middle = begin + (end - begin) / 2;
    (StartAt(middle) <= address ? begin : end) = middle;
  }
  return OwnerAt(begin);
}

std::string MakeUnwindTable(std::span<const CfiSection> sections) {
  Maker maker;
  for (const CfiSection& section : sections) {
    WorkLimit limit(kBaseSteps + kStepsPerByte * section.bytes.size());
    ForEachCfiFunction(section, [&](const CfiFunction& function) { maker.Add(function, limit); });
    maker.EndSection();
  }
  return maker.Finish();
}

std::string MakeUnwindTable(const OrcSections& sections) {
  const auto entries = ReadOrc(sections);
  return entries ? MakeUnwindTable(*entries) : std::string();
}

std::string MakeUnwindTable(std::span<const OrcEntry> entries) {
  if (entries.empty()) return {};
  Maker maker;
  maker.Add(entries);
  maker.EndSection();
  return maker.Finish();
}

}  // namespace xenoscope::symbolizer
