#include "report/html/page_exit_list.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>

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

// Adds lengths, which are at most `kMost`: all at once, if none is too long for that.
template <size_t kMost>
void AddAll(std::span<const Cycles> lengths, Sketch& sketch) {
  std::array<uint32_t, kMost> low;  // NOLINT(cppcoreguidelines-pro-type-member-init): hot
  Cycles all = 0;
  for (size_t i = 0; i < lengths.size(); ++i) {
    low[i] = static_cast<uint32_t>(lengths[i]);
    all |= lengths[i];
  }
  if (all <= std::numeric_limits<uint32_t>::max()) {
    sketch.AddAll(std::span(low).first(lengths.size()), Weighting::kByCount);
  } else {
    for (const Cycles length : lengths) sketch.Add(length, 1);
  }
}

}  // namespace

PageExitList::Exits& PageExitList::FindExits(const Key& key) {
  const auto next = static_cast<uint32_t>(exits_.size());
  const auto [at, is_new] = numbers_.try_emplace(key.AsNumber(), next);
  if (is_new) exits_.push_back({.key = key, .key_number = key.AsNumber(), .number = next});
  return exits_[at->second];  // a deque's elements stay where they are
}

uint32_t PageExitList::StepKeyOf(Exits& exits, uint32_t step) {
  const auto known = std::ranges::find(exits.step_keys, step, &StepKey::step);
  if (known != exits.step_keys.end()) return known->key;
  exits.step_keys.push_back({.step = step, .key = all_length_keys_++});
  return exits.step_keys.back().key;
}

void PageExitList::CloseSteps(Exits& exits) {
  for (uint32_t word = 0; word < exits.has_step.size(); ++word) {
    for (uint64_t bits = std::exchange(exits.has_step[word], 0); bits != 0; bits &= bits - 1) {
      const uint32_t step = 64 * word + static_cast<uint32_t>(std::countr_zero(bits));
      const auto count = static_cast<double>(std::exchange(exits.by_step[step], 0));
      lengths_.Add(StepKeyOf(exits, step), {exits.steps_at, exits.steps_at}, count);
    }
  }
}

void PageExitList::CountSteps(Exits& exits) {
  const bool in_one_bin =
      lengths_.AreInBinOf(exits.steps_at, std::span(exits.begins_waiting).first(exits.waiting));
  for (uint32_t i = 0; i < exits.waiting; ++i) {
    const Tsc begin = exits.begins_waiting[i];
    if (!in_one_bin && !lengths_.AreInBinOf(exits.steps_at, {&begin, 1})) {
      CloseSteps(exits);
      exits.steps_at = begin;
    }
    const uint32_t step = LengthStep(exits.lengths_waiting[i]);
    ++exits.by_step[step];
    exits.has_step[step / 64] |= uint64_t{1} << step % 64;
  }
}

void PageExitList::CountWaiting(Exits& exits) {
  const auto begins = std::span(exits.begins_waiting).first(exits.waiting);
  if (counts_.AreInBinOf(exits.open_count.at, begins)) {
    exits.open_count.amount += exits.waiting;
  } else {
    for (const Tsc begin : begins) counts_.AddAt(exits.number, begin, 1, exits.open_count);
  }
  CountSteps(exits);
  AddAll<kAtOnce>(std::span(exits.lengths_waiting).first(exits.waiting), exits.lengths);
  exits.count += std::exchange(exits.waiting, 0);
}

void PageExitList::AddTime(const Segment& segment, TscRange shown) {
  const Cause cause = segment.nested ? Cause::kNestedExit : Cause::kExit;
  Exits& exits = ExitsOf({segment.vcpu.domain, cause, segment.reason});
  exits.cycles += shown.Length();
  cycles_.Add(exits.number, shown, static_cast<double>(shown.Length()), exits.open_cycles);
}

void PageExitList::AddExit(const ExitArc& arc) {
  const Cause cause = arc.nested ? Cause::kNestedExit : Cause::kExit;
  AddLength(ExitsOf({arc.vcpu.domain, cause, arc.reason}),
            std::max(arc.range.begin, report_.sampled.begin), arc.range.Length());
}

void PageExitList::AddEntry(const Mark& mark, TscRange at_most) {
  Exits& exits = ExitsOf({mark.vcpu.domain, Cause::kMark, static_cast<uint32_t>(mark.kind)});
  exits.cycles += at_most.Length();
  cycles_.Add(exits.number, at_most, static_cast<double>(at_most.Length()), exits.open_cycles);
  const uint32_t number = std::min(mark.number, kMostMarkNumbers);
  if (number >= exits.parts.size()) exits.parts.resize(size_t{number} + 1);
  Sum& part = exits.parts[number];
  ++part.count;
  part.cycles += at_most.Length();
  AddLength(exits, mark.tsc, at_most.Length());
}

void PageExitList::Finish() {
  pv_entries_.Finish([this](const auto&... entry) { AddEntry(entry...); });
  for (Exits& exits : exits_) {
    CountWaiting(exits);
    counts_.Close(exits.number, exits.open_count);
    cycles_.Close(exits.number, exits.open_cycles);
    CloseSteps(exits);
  }
}

std::string PageExitList::NameOf(const Key& key) const {
  if (key.cause == Cause::kMark) return MarkKindName(static_cast<MarkKind>(key.reason));
  return trace::ExitName(report_.vendor, key.cause == Cause::kNestedExit, key.reason);
}

ordered_json PageExitList::ExitJson(const Exits& exits) const {
  const Key& key = exits.key;
  ordered_json json{{"domain", DomainLabel(key.domain, report_.domain_name(key.domain))},
                    {"name", NameOf(key)},
                    {"count", exits.count},
                    {"cycles", exits.cycles},
                    {"at_most", key.cause == Cause::kMark},
                    {"p5", exits.lengths.Percentile(0.05)},
                    {"p50", exits.lengths.Percentile(0.5)},
                    {"p95", exits.lengths.Percentile(0.95)}};
  if (!exits.parts.empty()) {
    ExitSums sums;
    for (uint32_t number = 0; number < exits.parts.size(); ++number) {
      const Sum& part = exits.parts[number];
      if (part.count == 0) continue;
      Mark mark;
      mark.kind = static_cast<MarkKind>(key.reason);
      mark.number = number;
      const std::string name = number < kMostMarkNumbers ? MarkName(mark) : "(others)";
      ExitSum& sum = sums[name == json["name"] ? "-" : name];
      sum.count += part.count;
      sum.cycles += part.cycles;
    }
    json["parts"] = ExitPartsJson(sums);
  }
  return json;
}

absl::StatusOr<ordered_json> PageExitList::ToJson(Tsc zero) const {
  std::vector<const Exits*> sorted;
  sorted.reserve(exits_.size());
  for (const Exits& exits : exits_) sorted.push_back(&exits);
  std::ranges::sort(sorted, [](const Exits* a, const Exits* b) {
    return a->cycles != b->cycles ? a->cycles > b->cycles : a->key < b->key;
  });
  const auto in_order = [&](const correlate::BinnedSums& sums) {
    auto by_number = sums.ByKey(exits_.size());
    OverTime of{.width = sums.width()};
    of.things.reserve(sorted.size());
    for (const Exits* exits : sorted) of.things.push_back(std::move(by_number[exits->number]));
    return of;
  };
  ordered_json out;
  XENOSCOPE_ASSIGN_OR_RETURN(out["counts"], OverTimeJson(in_order(counts_), zero, 1));
  XENOSCOPE_ASSIGN_OR_RETURN(out["cycles"], OverTimeJson(in_order(cycles_), zero, 1));
  auto by_key = lengths_.ByKey(all_length_keys_);
  OverTime lengths{.width = lengths_.width()};
  std::string steps;
  for (const Exits* exits : sorted) {
    std::vector<StepKey> sorted_steps = exits->step_keys;
    std::ranges::sort(sorted_steps, {}, &StepKey::step);
    PutNumber(sorted_steps.size(), steps);
    uint32_t before = 0;
    for (const StepKey& each : sorted_steps) {
      PutNumber(each.step - before, steps);
      before = each.step;
      lengths.things.push_back(std::move(by_key[each.key]));
    }
  }
  XENOSCOPE_ASSIGN_OR_RETURN(out["lengths"], OverTimeJson(lengths, zero, 1));
  XENOSCOPE_ASSIGN_OR_RETURN(out["length_steps"], Packed(steps));
  ordered_json& list = out["list"] = ordered_json::array();
  for (const Exits* exits : sorted) list.push_back(ExitJson(*exits));
  return out;
}

}  // namespace xenoscope::report
