#include "analysis/exit_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "trace/names.h"

namespace xenoscope::analysis {
namespace {

// Reasons are small numbers (VMX below 80, SVM up to 0x404); anything above is counted together
// with its number lost only here: no processor has it.
constexpr uint32_t kMostReasons = 0x440;
constexpr uint32_t kNested = 0x800;  // beyond all reasons

// The tag of a part's key: kind, nested, reason.
uint32_t Tag(const ExitContents& exit, ExitKind kind) {
  const uint32_t reason = std::min(exit.reason & 0xffff, kMostReasons);
  return static_cast<uint32_t>(kind) << 16 | (exit.nested ? kNested : 0) | reason;
}
// The part that takes what finds no room, of the same reason.
TableKey Others(const TableKey& key) {
  return {0, static_cast<uint32_t>(ExitKind::kOthers) << 16 | (key.tag & 0xffff)};
}
ExitKind KindOf(uint32_t tag) { return static_cast<ExitKind>(tag >> 16); }
uint32_t ReasonOf(uint32_t tag) { return tag & (kNested - 1); }
bool IsNested(uint32_t tag) { return (tag & kNested) != 0; }

using Numbers = std::map<uint64_t, const Stat*>;

// A handler event with its numbers, where it has any; `all` takes its sum.
Row KindRow(ExitKind kind, const Numbers& numbers, Stat& all) {
  Row row{ToString(kind), {}, {}};
  Stat sum;
  for (const auto& [number, stat] : numbers) {
    sum.Merge(*stat);
    std::string name = NumberName(kind, number);
    if (!name.empty()) row.parts.push_back(Row{std::move(name), {}, {}}.Add(stat->Figures()));
  }
  row.Add(sum.Figures());
  all.Merge(sum);
  return row;
}

}  // namespace

void ExitParts::Add(const ExitContents& exit, Room& room) {
  const TableKey key{exit.number, Tag(exit, exit.kind)};
  stats_.At(key, Others(key), kMost, room).Add(exit.length);
}

void ExitParts::Prepend(ExitParts& earlier, Room& room) {
  stats_.Prepend(
      earlier.stats_, kMost, room, [](Stat& stat, const Stat& more) { stat.Merge(more); }, Others);
}

void ExitParts::Describe(bool nested, const trace::Dialect& dialect, Group& group) const {
  std::map<uint32_t, std::map<ExitKind, Numbers>> reasons;
  stats_.ForEach([&](const TableKey& key, const Stat& stat) {
    if (IsNested(key.tag) != nested) return;
    reasons[ReasonOf(key.tag)][KindOf(key.tag)][key.number] = &stat;
  });
  for (const auto& [reason, kinds] : reasons) {
    std::string name(trace::ExitReasonName(dialect.vendor, reason));
    if (name.empty()) name = fmt::format("reason_0x{:x}", reason);
    Row row{std::move(name), {}, {}};
    Stat all;
    for (const auto& [kind, numbers] : kinds) row.parts.push_back(KindRow(kind, numbers, all));
    row.Add(all.Figures());
    group.rows.push_back(std::move(row));
  }
}

}  // namespace xenoscope::analysis
