#include "report/html/page_exit_list.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "report/export/timeline_names.h"
#include "report/html/packed.h"
#include "report/html/page_exits.h"
#include "report/markup.h"
#include "trace/exit_name.h"

namespace xenoscope::report {
namespace {

using correlate::ExitArc;
using correlate::Mark;
using correlate::MarkKind;
using correlate::Segment;
using nlohmann::ordered_json;

// Hypercalls and traps have smaller numbers. Others, which guests may choose, are one.
constexpr uint32_t kMostMarkNumbers = 256;

std::string CauseOf(MarkKind kind) {
  switch (kind) {
    case MarkKind::kHypercall:
      return "hypercall";
    case MarkKind::kSubcall:
      return "hypercall in multicall";
    case MarkKind::kTrap:
      return "trap";
    case MarkKind::kPageFault:
      return "page_fault";
    case MarkKind::kEmulation:
      break;
  }
  return "emulation";
}

size_t Octave(Cycles length) {
  return static_cast<size_t>(std::bit_width(std::max<Cycles>(length, 1)) - 1);
}

}  // namespace

uint32_t LengthStep(Cycles length) {
  const auto octave = static_cast<uint32_t>(Octave(length));
  // The two bits below the highest one.
  const Cycles quarter = octave >= 2 ? length >> (octave - 2) : length << (2 - octave);
  return kLengthStepsOfOctave * octave + static_cast<uint32_t>(quarter & 3U);
}

PageExitList::Exits& PageExitList::ExitsOf(const Key& key) {
  const auto [at, is_new] = exits_.try_emplace(key);
  if (is_new) at->second.number = static_cast<uint32_t>(exits_.size() - 1);
  return at->second;
}

void PageExitList::AddLength(Exits& exits, Tsc begin, Cycles length) {
  const Tsc shown = std::max(begin, report_.sampled.begin);
  counts_.Add(exits.number, {shown, shown}, 1);
  const auto next = static_cast<uint32_t>(length_keys_.size());
  const uint32_t key =
      length_keys_.try_emplace({exits.number, LengthStep(length)}, next).first->second;
  lengths_.Add(key, {shown, shown}, 1);
  ++exits.count;
  exits.lengths.Add(length, 1);
  ++exits.octaves.at(Octave(length));
}

void PageExitList::AddTime(const Segment& segment, TscRange shown) {
  const Cause cause = segment.nested ? Cause::kNestedExit : Cause::kExit;
  Exits& exits = ExitsOf({segment.vcpu.domain, cause, segment.reason});
  exits.cycles += shown.Length();
  cycles_.Add(exits.number, shown, static_cast<double>(shown.Length()));
}

void PageExitList::AddExit(const ExitArc& arc) {
  const Cause cause = arc.nested ? Cause::kNestedExit : Cause::kExit;
  AddLength(ExitsOf({arc.vcpu.domain, cause, arc.reason}), arc.range.begin, arc.range.Length());
}

void PageExitList::AddMark(const Mark& mark) {
  EndRun(mark.vcpu_index, mark.tsc);
  if (!report_.sampled.Contains(mark.tsc)) return;
  if (mark.vcpu_index >= open_.size()) open_.resize(size_t{mark.vcpu_index} + 1);
  Exits& exits = ExitsOf({mark.vcpu.domain, Cause::kMark, static_cast<uint32_t>(mark.kind)});
  const std::string name = mark.number < kMostMarkNumbers ? MarkName(mark) : "(others)";
  open_[mark.vcpu_index] = {&exits, &exits.parts[name], mark.tsc};
}

void PageExitList::EndRun(uint32_t vcpu_index, Tsc at) {
  if (vcpu_index >= open_.size()) return;
  OpenMark& open = open_[vcpu_index];
  if (open.exits == nullptr) return;
  const TscRange range = TscRange{open.begin, std::max(open.begin, at)}.Intersect(report_.sampled);
  open.exits->cycles += range.Length();
  cycles_.Add(open.exits->number, range, static_cast<double>(range.Length()));
  ++open.part->count;
  open.part->cycles += range.Length();
  AddLength(*open.exits, open.begin, range.Length());
  open = {};
}

std::string PageExitList::NameOf(const Key& key) const {
  if (key.cause == Cause::kMark) return CauseOf(static_cast<MarkKind>(key.reason));
  return trace::ExitName(report_.vendor, key.cause == Cause::kNestedExit, key.reason);
}

ordered_json PageExitList::ExitJson(const Key& key, const Exits& exits) const {
  ordered_json json{{"domain", DomainLabel(key.domain, report_.domain_name(key.domain))},
                    {"name", NameOf(key)},
                    {"count", exits.count},
                    {"cycles", exits.cycles},
                    {"at_most", key.cause == Cause::kMark},
                    {"p5", exits.lengths.Percentile(0.05)},
                    {"p50", exits.lengths.Percentile(0.5)},
                    {"p95", exits.lengths.Percentile(0.95)},
                    {"octaves", exits.octaves}};
  if (!exits.parts.empty()) {
    ExitSums sums;
    for (const auto& [name, sum] : exits.parts) {
      sums[name == json["name"] ? "-" : name] = {sum.count, sum.cycles};
    }
    json["parts"] = ExitPartsJson(sums);
  }
  return json;
}

absl::StatusOr<ordered_json> PageExitList::ToJson(Tsc zero) const {
  std::vector<std::pair<const Key*, const Exits*>> sorted;
  sorted.reserve(exits_.size());
  for (const auto& [key, exits] : exits_) sorted.emplace_back(&key, &exits);
  std::ranges::stable_sort(sorted, std::ranges::greater(),
                           [](const auto& pair) { return pair.second->cycles; });
  std::vector<uint32_t> places(sorted.size());  // by number
  for (uint32_t i = 0; i < sorted.size(); ++i) places[sorted[i].second->number] = i;
  const auto in_order = [&](const correlate::BinnedSums& sums) {
    auto by_number = sums.ByKey(exits_.size());
    OverTime of{.width = sums.width()};
    of.things.reserve(sorted.size());
    for (const auto& [key, exits] : sorted) {
      of.things.push_back(std::move(by_number[exits->number]));
    }
    return of;
  };
  ordered_json out;
  XENOSCOPE_ASSIGN_OR_RETURN(out["counts"], OverTimeJson(in_order(counts_), zero, 1));
  XENOSCOPE_ASSIGN_OR_RETURN(out["cycles"], OverTimeJson(in_order(cycles_), zero, 1));
  const OverTime lengths{.width = lengths_.width(), .things = lengths_.ByKey(length_keys_.size())};
  XENOSCOPE_ASSIGN_OR_RETURN(out["lengths"], OverTimeJson(lengths, zero, 1));
  ordered_json& steps = out["length_steps"] = ordered_json::array();
  for (const auto& [exit_and_step, key] : length_keys_) {
    steps[key] = {places[exit_and_step.first], exit_and_step.second};
  }
  ordered_json& list = out["list"] = ordered_json::array();
  for (const auto& [key, exits] : sorted) list.push_back(ExitJson(*key, *exits));
  return out;
}

}  // namespace xenoscope::report
