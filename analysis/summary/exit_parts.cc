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

template <typename Lengths>
using Numbers = std::map<uint64_t, const Lengths*>;

// Returns the work of the shadow code in page faults with the same outcome: a row for each flag,
// with the exits that have it. An exit may have several flags, or none.
template <typename Lengths>
std::vector<MetricRow> FlagRows(const Numbers<Lengths>& numbers) {
  std::map<uint32_t, Lengths> flags;
  for (const auto& [number, lengths] : numbers) {
    for (uint64_t left = number >> kShadowFlagsShift; left != 0; left &= left - 1) {
      flags[static_cast<uint32_t>(std::countr_zero(left))].Merge(*lengths);
    }
  }
  std::vector<MetricRow> rows;
  for (const auto& [flag, lengths] : flags) {
    const std::string_view name = trace::ShadowFlagName(flag);
    rows.push_back(
        MetricRow{name.empty() ? fmt::format("flag {}", flag) : std::string(name), {}, {}}.Add(
            lengths.Summary()));
  }
  return rows;
}

// Returns the row of a handler event, with a part for each of its numbers; `all` gets the sum.
template <typename Lengths>
MetricRow KindRow(ExitKind kind, const Numbers<Lengths>& numbers, Lengths& all) {
  constexpr uint64_t kWithoutFlags = (uint64_t{1} << kShadowFlagsShift) - 1;
  std::map<uint64_t, Numbers<Lengths>> parts;  // parts that differ in flags only are one
  for (const auto& [number, lengths] : numbers) {
    parts[kind == ExitKind::kPageFault ? number & kWithoutFlags : number][number] = lengths;
  }
  MetricRow row{ToString(kind), {}, {}};
  Lengths sum;
  for (const auto& [part, of_part] : parts) {
    Lengths lengths;
    for (const auto& [number, of_number] : of_part) lengths.Merge(*of_number);
    sum.Merge(lengths);
    std::string name = NumberName(kind, part);
    if (name.empty()) continue;
    MetricRow& added = row.parts.emplace_back(MetricRow{std::move(name), {}, {}});
    added.Add(lengths.Summary());
    if (kind == ExitKind::kPageFault) added.parts = FlagRows<Lengths>(of_part);
  }
  row.Add(sum.Summary());
  all.Merge(sum);
  return row;
}

}  // namespace

template <typename Lengths>
void ExitParts<Lengths>::Add(const ExitContents& exit, EntryBudget& budget) {
  const TableKey key{exit.number, Tag(exit, exit.kind)};
  Lengths* lengths = lengths_.Find(key, kMaxEntries, budget);
  if (lengths == nullptr) [[unlikely]] {
    lengths = &lengths_.AtOverBudget(Others(key));
  }
  lengths->Add(exit.length);
}

template <typename Lengths>
void ExitParts<Lengths>::Prepend(ExitParts& earlier, EntryBudget& budget) {
  lengths_.Prepend(
      earlier.lengths_, kMaxEntries, budget,
      [](Lengths& lengths, const Lengths& more) { lengths.Merge(more); }, Others);
}

template <typename Lengths>
void ExitParts<Lengths>::Describe(bool nested, const trace::Dialect& dialect,
                                  MetricGroup& group) const {
  std::map<uint32_t, std::map<ExitKind, Numbers<Lengths>>> reasons;
  lengths_.ForEach([&](const TableKey& key, const Lengths& lengths) {
    if (IsNested(key.tag) != nested) return;
    reasons[ReasonOf(key.tag)][KindOf(key.tag)][key.number] = &lengths;
  });
  for (const auto& [reason, kinds] : reasons) {
    std::string name(trace::ExitReasonName(dialect.vendor, reason));
    if (name.empty()) name = fmt::format("reason_0x{:x}", reason);
    MetricRow row{std::move(name), {}, {}};
    Lengths all;
    for (const auto& [kind, numbers] : kinds) {
      row.parts.push_back(KindRow<Lengths>(kind, numbers, all));
    }
    row.Add(all.Summary());
    group.rows.push_back(std::move(row));
  }
}

template class ExitParts<Stat>;
template class ExitParts<Totals>;

}  // namespace xenoscope::analysis
