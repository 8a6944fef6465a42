#include "report/profile/profile_view.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/ids.h"
#include "base/mode.h"
#include "findings/find.h"
#include "report/exit_names.h"
#include "report/findings/findings_view.h"
#include "report/profile/check_notes.h"
#include "report/profile/dimension_names.h"
#include "report/profile/profile_figures.h"
#include "report/profile/profile_tree.h"
#include "report/profile/pv_entries.h"
#include "report/table/table_csv.h"
#include "report/table/table_json.h"
#include "report/unread_notes.h"
#include "trace/exit_name.h"

namespace xenoscope::report {
namespace {

using correlate::Context;
using correlate::ContextKind;
using correlate::Dimension;
using correlate::Placement;
using correlate::ProfileRow;
using correlate::UnplacedReason;
using nlohmann::ordered_json;

// The columns after those of the dimensions, in their order.
constexpr std::array<std::string_view, 14> kFigures = {
    "samples",     "share",     "low",          "high",          "cycles",
    "total_share", "total_low", "total_high",   "total_samples", "total_cycles",
    "exits",       "per_exit",  "per_exit_low", "per_exit_high"};
// The ends of the keys of columns that only a profile of several events has.
constexpr std::array<std::string_view, 4> kRatioEnds = {"ipc", "_rate", "_pti", "_share"};

// Returns how long after the selected time the trace was read, in seconds.
double UnreadAfter(const ProfileReport& report) {
  return report.clock.Seconds(*report.unread_from - report.sampled.end);
}

// Returns "d1v0 d2v0", or "-" if no vCPU waited.
std::string WaitingNames(const ProfileReport& report, uint32_t set) {
  if (set == correlate::RunQueues::kEmptySet) return "-";
  if (set == correlate::RunQueues::kOthers) return "(others)";
  std::string names;
  for (const VcpuRef vcpu : report.waiting_sets.at(set)) {
    names += fmt::format("{}{}", names.empty() ? "" : " ", ToString(vcpu));
  }
  return names;
}

// Returns "vector 0xf3", or "-" if the trace has no wake-up of it.
std::string WakeupName(uint32_t wakeup) {
  if (wakeup == correlate::Wakeup::kNone) return "-";
  if (wakeup == correlate::Wakeup::kOther) return "(other)";
  return fmt::format("vector {:#04x}", wakeup - correlate::Wakeup::kVector);
}

// Returns "d1v0"; "web v0" where domains have names only, as in a store.
std::string VcpuLabel(const ProfileReport& report, VcpuRef vcpu) {
  if (report.has_domain_numbers) return ToString(vcpu);
  return fmt::format("{} v{}", DomainLabel(report, vcpu.domain), vcpu.vcpu.value);
}

Column ColumnOf(Dimension dimension) {
  const std::string name(ToString(dimension));
  switch (dimension) {
    case Dimension::kPcpu:
      return {name, name, ColumnUnit::kCount, Shorten::kEnd};
    case Dimension::kAddress:
    case Dimension::kPage:
      return {name, name, ColumnUnit::kHex, Shorten::kEnd};
    default:
      return {name, name, ColumnUnit::kText, Shorten::kMiddle};
  }
}

// Figures descend; words and numbers of things ascend.
void Order(Table& table, const ProfileReport& report, const ProfileSelection& selection) {
  const size_t share = table.Find("share");
  table.Sort(share, /*descending=*/true);
  const size_t column = table.Find(selection.sort);
  if (column == share || column == table.columns.size()) return;
  const bool is_thing = std::ranges::any_of(
      report.by, [&](Dimension dimension) { return ToString(dimension) == selection.sort; });
  table.Sort(column, /*descending=*/!is_thing);
}

// Limits the rows, one for each domain, to those of the selection, and adds one for the sum of the
// others.
void LimitDomainRows(const ProfileReport& report, const ProfileSelection& selection, Table& table) {
  if (selection.limit == 0 || table.groups.empty()) return;
  std::vector<TableRow>& rows = table.groups.front().rows;
  if (rows.size() <= selection.limit + 1) return;
  FigureSum others(report, table);
  for (const TableRow& row : std::span(rows).subspan(selection.limit)) others.Add(row.cells);
  rows.resize(selection.limit);
  table.footers.push_back({others.RowOf(0)});
}

// Returns a line for each row with all columns: for programs, and for people if rows are not
// grouped. Programs get the domain's number too, since names need not be unique.
Table FlatTable(const ProfileReport& report, const ProfileSelection& selection, Reader reader) {
  Table table;
  for (const Dimension dimension : report.by) table.columns.push_back(ColumnOf(dimension));
  AddFigureColumns(report, reader, table);
  const bool numbered =
      reader == Reader::kProgram && report.has_domain_numbers &&
      std::find(report.by.begin(), report.by.end(), Dimension::kDomain) != report.by.end();
  if (numbered) table.columns.push_back({"domid", "domid", ColumnUnit::kCount, Shorten::kEnd});
  size_t below = 0;
  for (const ProfileRow& row : report.result.rows) {
    if (!IsSelected(selection, row)) continue;
    if (LargestShare(row) < selection.threshold) {
      ++below;
      continue;
    }
    std::vector<Cell> cells;
    for (const Dimension dimension : report.by) {
      cells.push_back(DimensionCell(report, row, dimension));
    }
    AddFigures(report, row, reader, cells);
    if (reader == Reader::kPeople) NameTraced(report, table, row, cells);
    if (numbered) cells.emplace_back(uint64_t{row.domain.value});
    table.AddRow(std::move(cells));
  }
  if (!table.groups.empty()) table.groups.back().left_out = below;
  Order(table, report, selection);
  if (reader == Reader::kPeople && report.by == std::vector{Dimension::kDomain}) {
    LimitDomainRows(report, selection, table);
  }
  table.Limit(selection.limit);
  return table;
}

// Returns the rows of each domain under a heading with the domain's own figures.
Table GroupedTable(const ProfileReport& report, const ProfileSelection& selection) {
  const std::vector<Dimension> inner(report.by.begin() + 1, report.by.end());
  Table table;
  for (const Dimension dimension : inner) table.columns.push_back(ColumnOf(dimension));
  AddFigureColumns(report, Reader::kPeople, table);
  // The heading's name goes where the first words of its rows are.
  const auto words =
      std::find_if(table.columns.begin(), table.columns.end(),
                   [](const Column& column) { return column.unit == ColumnUnit::kText; });
  const bool has_words = words != table.columns.end();
  const auto name_at = static_cast<size_t>(words - table.columns.begin());
  if (!has_words) table.columns.insert(table.columns.begin(), {"domain", "domain"});

  std::map<DomainId, size_t> group_of;
  for (const ProfileRow& row : report.result.domains) {
    if (!IsSelected(selection, row)) continue;
    std::vector<Cell> heading(table.columns.size() - FigureColumns(report, Reader::kPeople).size());
    heading[has_words ? name_at : 0] = report.has_domain_numbers
                                           ? DomainTitle(row.domain, report.domain_name(row.domain))
                                           : DomainLabel(report, row.domain);
    AddFigures(report, row, Reader::kPeople, heading);
    NameTraced(report, table, row, heading);
    group_of[row.domain] = table.groups.size();
    table.groups.push_back({std::move(heading), {}, 0});
  }
  for (const ProfileRow& row : report.result.rows) {
    const auto found = group_of.find(row.domain);
    if (found == group_of.end()) continue;
    RowGroup& group = table.groups[found->second];
    if (LargestShare(row) < selection.threshold) {
      ++group.left_out;
      continue;
    }
    std::vector<Cell> cells;
    if (!has_words) cells.emplace_back();
    for (const Dimension dimension : inner) cells.push_back(DimensionCell(report, row, dimension));
    AddFigures(report, row, Reader::kPeople, cells);
    NameTraced(report, table, row, cells);
    group.rows.push_back({std::move(cells), 1});
  }
  Order(table, report, selection);
  LimitDomains(report, selection, has_words ? name_at : 0, table);
  table.Limit(selection.limit);
  return table;
}

Table TextTable(const ProfileReport& report, const ProfileSelection& selection) {
  if (!report.result.subtotals.empty()) return ProfileTree(report, selection);
  const bool grouped = report.by.size() > 1 && report.by.front() == Dimension::kDomain;
  return grouped ? GroupedTable(report, selection) : FlatTable(report, selection, Reader::kPeople);
}

// Returns a line below the table, with its name where the first words of rows are.
Footer TotalOf(const ProfileReport& report, const RowTotals& totals, const std::string& name,
               const Table& table) {
  Footer footer;
  footer.cells.resize(table.columns.size());
  footer.cells[table.Find("samples")] = totals.samples;
  footer.cells[table.Find("share")] = totals.share;
  if (report.is_time) footer.cells[table.Find("cycles")] = totals.cycles;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.columns[i].unit != ColumnUnit::kText) continue;
    footer.cells[i] = name;
    break;
  }
  return footer;
}

std::string_view Explain(UnplacedReason remainder) {
  switch (remainder) {
    case UnplacedReason::kOutsideTrace:
      return "outside the trace";
    case UnplacedReason::kUnknownVcpu:
      return "of vCPUs that are not in the trace";
    case UnplacedReason::kNotRunning:
      return "taken when their vCPU was not running";
    case UnplacedReason::kModeDisagrees:
      return "in a mode that their vCPU was not in at that time";
    case UnplacedReason::kTraceLost:
      return "where the trace lost records";
    case UnplacedReason::kOutOfOrder:
      return "out of order in time";
  }
  return "?";
}

std::string Head(const ProfileReport& report) {
  const correlate::PlacingCounts& counts = report.counts;
  std::string out = fmt::format("{} samples of {}", Count(counts.samples), report.event);
  if (!report.sampled.Empty()) {
    out += fmt::format(" in {:.1f} s at {:.3f} GHz ({})",
                       report.clock.Seconds(report.sampled.Length()),
                       static_cast<double>(report.clock.hz) / 1e9, ToString(report.clock.source));
  }
  if (report.result.has_totals) {
    out +=
        "\ntotal: in the function or what it called, each sample once; self: in the function "
        "itself";
  }
  out += fmt::format("\nlow to high, or ±: 95 % interval of the share{}",
                     report.result.has_totals ? " before them" : "");
  if (!report.comparison.ratios.empty()) out += ", and of the ratio before them";
  out += "\n";
  for (const profile::RatioColumn& ratio : report.comparison.ratios) {
    out += fmt::format("{}: {}\n", ratio.title, ratio.about);
  }
  return out;
}

// Returns the number of samples in each placement and each remainder, and the notes on data
// quality, one line each.
std::string Foot(const ProfileReport& report, const ProfileSelection& selection) {
  const correlate::PlacingCounts& counts = report.counts;
  const correlate::ProfileResult& result = report.result;
  std::string out = fmt::format("\n{} of {} samples attributed", Count(counts.Attributed()),
                                Count(counts.samples));
  std::string how;
  for (size_t i = 0; i < correlate::kPlacements; ++i) {
    if (counts.placed.at(i) == 0) continue;
    how += fmt::format("{}{} {}", how.empty() ? ": " : ", ", Count(counts.placed.at(i)),
                       PlacementDescription(static_cast<Placement>(i)));
    if (static_cast<Placement>(i) == Placement::kClocked) how += ClockErrorText(report, {});
  }
  out += how + '\n';
  for (size_t i = 0; i < correlate::kUnplacedReasons; ++i) {
    if (counts.unplaced.at(i) == 0) continue;
    out += fmt::format("{} samples {}\n", Count(counts.unplaced.at(i)),
                       Explain(static_cast<UnplacedReason>(i)));
  }
  if (report.outside > 0) {
    out += fmt::format("{} samples outside the selected time\n", Count(report.outside));
  }
  if (report.unread_from) {
    out += fmt::format(
        "the trace was not read from {} after the selected time on: nothing there has to do with "
        "it\n",
        CellText(UnreadAfter(report), ColumnUnit::kSeconds));
  }
  if (report.lost_in_buffers > 0) {
    out += fmt::format("{} samples lost because their buffers were full\n",
                       Count(report.lost_in_buffers));
  }
  if (report.damaged > 0) {
    out += fmt::format("{} samples in damaged parts of the recording\n", Count(report.damaged));
  }
  if (counts.lost_records > 0) {
    out += fmt::format("{} trace records lost in {}: samples alone attribute that time\n",
                       Count(counts.lost_records),
                       CellText(report.clock.Seconds(counts.lost_time), ColumnUnit::kSeconds));
  }
  for (const std::string& note : UnreadNotes(counts.unread)) out += note + "\n";
  if (counts.repaired > 0) {
    out +=
        fmt::format("{} stale guest addresses corrected from the trace\n", Count(counts.repaired));
  }
  if (counts.stale > 0) {
    out += fmt::format("{} guest addresses are stale: they date from the last VM entry\n",
                       Count(counts.stale));
  }
  if (result.unsampled_cycles > 0) {
    out += fmt::format("{} cycles of these domains have no sample ({} of the total)\n",
                       CellText(result.unsampled_cycles, ColumnUnit::kCycles),
                       Percent(result.unsampled_cycles / result.cycles));
  }
  for (const std::string& note : PvEntryNotes(report, selection)) out += note + "\n";
  for (const std::string& note : UnresolvedNotes(report)) out += note + "\n";
  for (const std::string& note : CheckNotes(report)) out += fmt::format("note: {}\n", note);
  const size_t changes = std::min(report.changes.size(), kMostDomains);
  for (const std::string& change : std::span(report.changes).first(changes)) {
    out += fmt::format("during the recording: {}\n", change);
  }
  if (changes < report.changes.size()) {
    out += fmt::format("during the recording: {} more domains changed; --format json has them\n",
                       report.changes.size() - changes);
  }
  for (const std::string& caution : report.cautions) out += fmt::format("note: {}\n", caution);
  return out;
}

}  // namespace

std::string ContextName(const ProfileReport& report, Context context) {
  switch (context.kind) {
    case ContextKind::kRunning:
      return "running";
    case ContextKind::kGuest:
      return context.nested ? "nested guest" : "guest";
    case ContextKind::kResume:
      return "resume";
    case ContextKind::kTransition:
      return context.nested ? "nested transition" : "transition";
    case ContextKind::kSwitch:
    case ContextKind::kUnsampledSwitch:
      return "context-switch";
    case ContextKind::kLost:
      return "lost";
    case ContextKind::kUntraced:
      return "untraced";
    case ContextKind::kExit:
      break;
  }
  if (report.exit_name) return report.exit_name(context.reason);
  return trace::ExitName(report.vendor, context.nested, context.reason);
}

std::optional<uint64_t> UtcOf(const ProfileReport& report, Tsc at) {
  if (!report.wall_clock) return std::nullopt;
  const TimeOfDay& known = *report.wall_clock;
  if (at < known.at) return known.utc_ns - report.clock.Nanoseconds(known.at - at);
  return known.utc_ns + report.clock.Nanoseconds(at - known.at);
}

std::string_view PlacementDescription(Placement placement) {
  switch (placement) {
    case Placement::kInstant:
      return "at known instants";
    case Placement::kNmiExit:
      return "timed by their NMI exit";
    case Placement::kAtExit:
      return "at another exit";
    case Placement::kStopped:
      return "where their vCPU stopped running";
    case Placement::kClocked:
      return "by the sampling clock";
    case Placement::kBracketed:
      return "estimated within a drain interval";
    case Placement::kUntraced:
      return "by domain and mode alone, without a trace";
  }
  return "?";
}

std::string ClockErrorText(const ProfileReport& report, std::optional<DomainId> domain) {
  double samples = 0;
  double errors = 0;
  for (const correlate::PlacingCheck& check : report.placing_checks) {
    if (domain && check.domain != *domain) continue;
    samples += static_cast<double>(check.clocked);
    errors += static_cast<double>(check.clocked) * check.clock_error;
  }
  if (samples == 0 || report.clock.hz == 0) return "";
  const double seconds = errors / samples / static_cast<double>(report.clock.hz);
  return fmt::format(", ±{} (95 %)", CellText(seconds, ColumnUnit::kSeconds));
}

std::vector<std::string> SortKeys() {
  std::vector<std::string> keys = DimensionNames();
  keys.insert(keys.end(), kFigures.begin(), kFigures.end());
  return keys;
}

bool IsSortKey(const std::vector<Dimension>& by, std::string_view key) {
  if (std::find(kFigures.begin(), kFigures.end(), key) != kFigures.end()) return true;
  if (std::ranges::any_of(kRatioEnds, [key](auto end) { return key.ends_with(end); })) return true;
  return std::any_of(by.begin(), by.end(),
                     [key](Dimension dimension) { return ToString(dimension) == key; });
}

bool HasColumn(const ProfileReport& report, std::string_view key) {
  const std::vector<Column> figures = FigureColumns(report, Reader::kProgram);
  return std::ranges::find(figures, key, &Column::key) != figures.end() ||
         std::ranges::find(report.by, key, [](Dimension by) { return ToString(by); }) !=
             report.by.end();
}

std::string DomainLabel(const ProfileReport& report, DomainId domain) {
  return xenoscope::DomainLabel(domain, report.domain_name(domain));
}

std::string DomainTitle(DomainId domain, const std::string& name) {
  return name.empty() ? ToString(domain) : fmt::format("{} {}", ToString(domain), name);
}

Cell DimensionCell(const ProfileReport& report, const ProfileRow& row, Dimension dimension) {
  switch (dimension) {
    case Dimension::kDomain:
      return DomainLabel(report, row.domain);
    case Dimension::kVcpu:
      return VcpuLabel(report, {row.domain, row.vcpu});
    case Dimension::kPcpu:
      return uint64_t{row.pcpu.value};
    case Dimension::kMode:
      return std::string(ToString(row.mode));
    case Dimension::kExit:
      return ContextName(report, row.exit);
    case Dimension::kImage:
      return row.image;
    case Dimension::kFunction:
      return row.function;
    case Dimension::kAddress:
      return uint64_t{row.address};
    case Dimension::kProcess:
      if (row.process.value != 0) return report.process_name(row.process);
      return row.process_of_thread.empty() ? std::string("-") : row.process_of_thread;
    case Dimension::kStack:
      return fmt::format("{}", fmt::join(StackNames(report, row), ";"));
    case Dimension::kPlacing:
      return std::string(correlate::ToString(row.placing));
    case Dimension::kSubreason:
      return SubreasonName(row.exit.exit_kind, row.exit.number);
    case Dimension::kWaiting:
      return WaitingNames(report, row.exit.waiting);
    case Dimension::kLine:
      return row.line;
    case Dimension::kWakeup:
      return WakeupName(row.exit.wakeup);
    case Dimension::kPage:
      return uint64_t{row.page};
    case Dimension::kBehalf:
      return row.behalf ? DomainLabel(report, *row.behalf) : std::string("-");
    case Dimension::kThread:
      return row.thread.empty() ? std::string("-") : row.thread;
    case Dimension::kContainer:
      return row.container.empty() ? std::string("-") : row.container;
    case Dimension::kHost: {
      const std::string& host = row.host.empty() ? report.host : row.host;
      return host.empty() ? std::string("-") : host;
    }
  }
  return {};
}

std::string DimensionText(const ProfileReport& report, const ProfileRow& row, Dimension dimension) {
  const Column column = ColumnOf(dimension);
  return CellText(DimensionCell(report, row, dimension), column.unit);
}

Table ProfileTable(const ProfileReport& report, const ProfileSelection& selection) {
  return FlatTable(report, selection, Reader::kPeople);
}

std::string FrameName(const ProfileReport& report, const std::vector<std::string>& inlined,
                      const std::vector<Context>& exits, const correlate::StackFrame& frame) {
  using Kind = correlate::StackFrame::Kind;
  switch (frame.kind) {
    case Kind::kFunction:
      break;
    case Kind::kInlined:
      return fmt::format("{} (inlined)", inlined.at(frame.number));
    case Kind::kExit: {
      const Context& exit = exits.at(frame.number);
      // docs/method.md, section 3.5.
      return exit.kind == ContextKind::kRunning ? "[entry unknown]" : ContextName(report, exit);
    }
    case Kind::kSubreason: {
      const Context& exit = exits.at(frame.number);
      return SubreasonName(exit.exit_kind, exit.number);
    }
  }
  return report.function_of(frame.function).name;
}

std::string FrameNameOf(const ProfileReport& report, const correlate::StackFrame& frame) {
  return FrameName(report, report.result.inlined, report.result.exits, frame);
}

correlate::Stack ShownFrames(const ProfileReport& report, const ProfileRow& row) {
  correlate::Stack stack = report.result.stacks.at(row.stack);
  const auto has_column = [&report](Dimension dimension) {
    return std::ranges::find(report.by, dimension) != report.by.end();
  };
  const bool has_exit = has_column(Dimension::kExit);
  const bool has_subreason = has_column(Dimension::kSubreason);
  std::erase_if(stack, [=](const correlate::StackFrame& frame) {
    return (has_exit && frame.kind == correlate::StackFrame::Kind::kExit) ||
           (has_subreason && frame.kind == correlate::StackFrame::Kind::kSubreason);
  });
  std::ranges::reverse(stack);
  return stack;
}

std::vector<std::string> StackNames(const ProfileReport& report, const ProfileRow& row) {
  std::vector<std::string> names;
  for (const correlate::StackFrame& frame : ShownFrames(report, row)) {
    names.push_back(FrameNameOf(report, frame));
  }
  return names;
}

std::vector<const ProfileRow*> SelectedRows(const ProfileReport& report,
                                            const ProfileSelection& selection) {
  std::vector<const ProfileRow*> rows;
  for (const ProfileRow& row : report.result.rows) {
    if (IsSelected(selection, row) && row.share >= selection.threshold) rows.push_back(&row);
  }
  std::ranges::stable_sort(rows, std::ranges::greater(),
                           [](const auto* row) { return row->share; });
  if (selection.limit > 0 && rows.size() > selection.limit) rows.resize(selection.limit);
  return rows;
}

bool IsSelected(const ProfileSelection& selection, const ProfileRow& row) {
  if (selection.domains.empty()) return true;
  return std::find(selection.domains.begin(), selection.domains.end(), row.domain) !=
         selection.domains.end();
}

std::vector<findings::Finding> SelectedFindings(const ProfileReport& report,
                                                const ProfileSelection& selection) {
  std::vector<findings::Finding> selected = report.findings;
  findings::KeepDomains(selection.domains, selected);
  return selected;
}

std::string ProfileText(const ProfileReport& report, const ProfileSelection& selection,
                        const TextStyle& style) {
  Table table = TextTable(report, selection);
  if (report.chosen) {
    table.footers.push_back(TotalOf(report, *report.chosen, "chosen", table));
  }
  Footer total = TotalOf(
      report, {report.result.samples, report.result.samples > 0 ? 1.0 : 0.0, report.result.cycles},
      "total", table);
  const auto figure = [&](std::string_view key) -> Cell& {
    return total.cells[table.Find(std::string(key))];
  };
  for (size_t i = 1; i < report.result.event_samples.size(); ++i) {
    figure(report.comparison.events[i].key + "_share") =
        report.result.event_samples[i] > 0 ? 1.0 : 0.0;
  }
  std::vector<Cell> ratios;
  AddRatios(report.result.ratios, ratios);
  for (size_t i = 0; i < report.result.ratios.size(); ++i) {
    const std::string& key = report.comparison.ratios[i].key;
    std::ranges::move(std::span(ratios).subspan(3 * i, 3), &figure(key));
  }
  table.footers.push_back(std::move(total));
  TextStyle figures_first = style;
  figures_first.figures_first = true;
  return FirstFindingsText(SelectedFindings(report, selection), {report.input, report.clock},
                           style) +
         Head(report) + "\n" + ToText(table, figures_first) + Foot(report, selection);
}

std::string ProfileCsv(const ProfileReport& report, const ProfileSelection& selection) {
  return ToCsv(FlatTable(report, selection, Reader::kProgram));
}

namespace {

// Returns the events of a comparison with their samples and ratios.
ordered_json ComparisonJson(const ProfileReport& report) {
  ordered_json events = ordered_json::array();
  for (size_t i = 0; i < report.comparison.events.size(); ++i) {
    const profile::ComparedEvent& event = report.comparison.events[i];
    events.push_back({{"event", event.text},
                      {"key", event.key},
                      {"period", event.period},
                      {"samples", report.result.event_samples[i]}});
  }
  ordered_json ratios = ordered_json::array();
  for (size_t i = 0; i < report.comparison.ratios.size(); ++i) {
    const profile::RatioColumn& ratio = report.comparison.ratios[i];
    const correlate::RatioEstimate& all = report.result.ratios[i];
    const auto number = [](const std::optional<double>& value) {
      return value ? ordered_json(*value) : ordered_json();
    };
    ratios.push_back({{"key", ratio.key},
                      {"about", ratio.about},
                      {"numerator", report.comparison.events[ratio.ratio.numerator].text},
                      {"denominator", report.comparison.events[ratio.ratio.denominator].text},
                      {"value", number(all.value)},
                      {"low", all.low},
                      {"high", number(all.high)}});
  }
  return {{"events", std::move(events)}, {"ratios", std::move(ratios)}};
}

}  // namespace

// Of docs/schemas/report.schema.json, which has the keys: a new number may take keys away.
constexpr int kSchemaVersion = 1;

ordered_json ProfileJson(const ProfileReport& report, const ProfileSelection& selection) {
  const correlate::PlacingCounts& counts = report.counts;
  ordered_json remainders = ordered_json::object();
  for (size_t i = 0; i < correlate::kUnplacedReasons; ++i) {
    remainders[ToString(static_cast<UnplacedReason>(i))] = counts.unplaced.at(i);
  }
  ordered_json placements = ordered_json::object();
  for (size_t i = 0; i < correlate::kPlacements; ++i) {
    placements[ToString(static_cast<Placement>(i))] = counts.placed.at(i);
  }
  return {
      {"schema_version", kSchemaVersion},
      {"program", "xenoscope " XENOSCOPE_VERSION},
      {"recording", report.input},
      {"findings", FindingsJson(SelectedFindings(report, selection), {report.input, report.clock})},
      {"samples",
       {{"total", counts.samples},
        {"attributed", counts.Attributed()},
        {"remainders", std::move(remainders)},
        {"placements", std::move(placements)},
        {"lost_in_buffers", report.lost_in_buffers},
        {"damaged", report.damaged},
        {"outside_range", report.outside},
        {"repaired_addresses", counts.repaired},
        {"stale_addresses", counts.stale}}},
      {"event", report.event},
      {"comparison", ComparisonJson(report)},
      {"changes", report.changes},
      {"cautions", report.cautions},
      {"cycles",
       {{"attributed",
         report.is_time ? ordered_json(std::llround(report.result.cycles)) : ordered_json()},
        {"unsampled", std::llround(report.result.unsampled_cycles)}}},
      {"trace",
       {{"nmi_exits", counts.nmi_exits},
        {"lost_records", counts.lost_records},
        {"lost_cycles", counts.lost_time},
        {"damages", counts.unread.damages},
        {"damaged_bytes", counts.unread.damaged_bytes},
        {"malformed_records", counts.unread.malformed},
        {"unread_after_seconds",
         report.unread_from ? ordered_json(UnreadAfter(report)) : ordered_json()}}},
      {"cpu_hz", report.clock.hz},
      {"cpu_hz_source", ToString(report.clock.source)},
      {"checks", DomainChecksJson(report)},
      {"placing_checks", PlacingChecksJson(report)},
      {"pv_entries", PvEntriesJson(report)},
      {"rows", ToJson(FlatTable(report, selection, Reader::kProgram))}};
}

}  // namespace xenoscope::report
