#include "analysis/summary/exit_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/names.h"

namespace xenoscope::analysis {

using correlate::ExitContents;
using correlate::ExitKind;
using correlate::kShadowFlagsShift;

namespace {

// Limit of reasons: they are small numbers (VMX below 80, SVM up to 0x404). Reasons from here on,
// which no processor has, are counted together.
constexpr uint32_t kMaxReasons = 0x440;
constexpr uint32_t kNested = 0x800;  // beyond all reasons

// Returns the tag of a part's key: kind, nested, reason.
uint32_t Tag(const ExitContents& exit, ExitKind kind) {
  const uint32_t reason = std::min(exit.reason & 0xffff, kMaxReasons);
  return static_cast<uint32_t>(kind) << 16 | (exit.nested ? kNested : 0) | reason;
}
// Returns the part, of the same reason, that takes exits for which there is no room.
TableKey Others(const TableKey& key) {
  return {0, static_cast<uint32_t>(ExitKind::kOthers) << 16 | (key.tag & 0xffff)};
}
ExitKind KindOf(uint32_t tag) { return static_cast<ExitKind>(tag >> 16); }
uint32_t ReasonOf(uint32_t tag) { return tag & (kNested - 1); }
bool IsNested(uint32_t tag) { return (tag & kNested) != 0; }

using Numbers = std::map<uint64_t, const Stat*>;

// Returns the work of the shadow code in page faults with the same outcome: a row for each flag,
// with the exits that have it. An exit may have several flags, or none.
std::vector<MetricRow> FlagRows(const Numbers& numbers) {
  std::map<uint32_t, Stat> flags;
  for (const auto& [number, stat] : numbers) {
    for (uint64_t left = number >> kShadowFlagsShift; left != 0; left &= left - 1) {
      flags[static_cast<uint32_t>(std::countr_zero(left))].Merge(*stat);
    }
  }
  std::vector<MetricRow> rows;
  for (const auto& [flag, stat] : flags) {
    const std::string_view name = trace::ShadowFlagName(flag);
    rows.push_back(
        MetricRow{name.empty() ? fmt::format("flag {}", flag) : std::string(name), {}, {}}.Add(
            stat.Summary()));
  }
  return rows;
}

// Returns the row of a handler event, with a part for each of its numbers; `all` gets the sum.
MetricRow KindRow(ExitKind kind, const Numbers& numbers, Stat& all) {
  constexpr uint64_t kWithoutFlags = (uint64_t{1} << kShadowFlagsShift) - 1;
  std::map<uint64_t, Numbers> parts;  // parts that differ in flags only are one
  for (const auto& [number, stat] : numbers) {
    parts[kind == ExitKind::kPageFault ? number & kWithoutFlags : number][number] = stat;
  }
  MetricRow row{ToString(kind), {}, {}};
  Stat sum;
  for (const auto& [part, of_part] : parts) {
    Stat stat;
    for (const auto& [number, of_number] : of_part) stat.Merge(*of_number);
    sum.Merge(stat);
    std::string name = NumberName(kind, part);
    if (name.empty()) continue;
    MetricRow& added = row.parts.emplace_back(MetricRow{std::move(name), {}, {}});
    added.Add(stat.Summary());
    if (kind == ExitKind::kPageFault) added.parts = FlagRows(of_part);
  }
  row.Add(sum.Summary());
  all.Merge(sum);
  return row;
}

}  // namespace

void ExitParts::Add(const ExitContents& exit, EntryBudget& budget) {
  const TableKey key{exit.number, Tag(exit, exit.kind)};
  Stat* stat = stats_.Find(key, kMaxEntries, budget);
  if (stat == nullptr) [[unlikely]] {
    stat = &stats_.AtOverBudget(Others(key));
  }
  stat->Add(exit.length);
}

void ExitParts::Prepend(ExitParts& earlier, EntryBudget& budget) {
  stats_.Prepend(
      earlier.stats_, kMaxEntries, budget, [](Stat& stat, const Stat& more) { stat.Merge(more); },
      Others);
}

void ExitParts::Describe(bool nested, const trace::Dialect& dialect, MetricGroup& group) const {
  std::map<uint32_t, std::map<ExitKind, Numbers>> reasons;
  stats_.ForEach([&](const TableKey& key, const Stat& stat) {
    if (IsNested(key.tag) != nested) return;
    reasons[ReasonOf(key.tag)][KindOf(key.tag)][key.number] = &stat;
  });
  for (const auto& [reason, kinds] : reasons) {
    std::string name(trace::ExitReasonName(dialect.vendor, reason));
    if (name.empty()) name = fmt::format("reason_0x{:x}", reason);
    MetricRow row{std::move(name), {}, {}};
    Stat all;
    for (const auto& [kind, numbers] : kinds) row.parts.push_back(KindRow(kind, numbers, all));
    row.Add(all.Summary());
    group.rows.push_back(std::move(row));
  }
}

}  // namespace xenoscope::analysis
