#include "report/html/page_exit_list.h"

#include <algorithm>
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

}  // namespace

PageExitList::Exits& PageExitList::ExitsOf(const Key& key) {
  if (last_ != nullptr && last_key_ == key) return *last_;
  constexpr uint32_t kSpread = 67;  // domains have the same few reasons
  Exits*& recent = recent_[(key.reason + kSpread * key.domain.value) % kRecent];
  if (recent == nullptr || recent->key != key) {
    const auto next = static_cast<uint32_t>(exits_.size());
    const auto [at, is_new] = numbers_.try_emplace(key, next);
    if (is_new) exits_.push_back({.key = key, .number = next});
    recent = &exits_[at->second];  // a deque's elements stay where they are
  }
  last_key_ = key;
  last_ = recent;
  return *recent;
}

PageExitList::LengthOfStep& PageExitList::NewStep(Exits& exits, uint32_t step) {
  exits.steps.push_back({.step = step, .key = all_length_keys_++});
  exits.step_places[step] = static_cast<uint16_t>(exits.steps.size());
  return exits.steps.back();
}

void PageExitList::CountWaiting(Exits& exits) {
  for (const auto& [begin, length] : std::span(exits.lengths_waiting).first(exits.waiting)) {
    const Tsc shown = std::max(begin, report_.sampled.begin);
    counts_.AddAt(exits.number, shown, 1, exits.open_count);
    LengthOfStep& step = StepOf(exits, LengthStep(length));
    lengths_.AddAt(step.key, shown, 1, step.open);
    exits.lengths.Add(length, 1);
  }
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
  AddLength(ExitsOf({arc.vcpu.domain, cause, arc.reason}), arc.range.begin, arc.range.Length());
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
    for (LengthOfStep& step : exits.steps) lengths_.Close(step.key, step.open);
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
    std::vector<LengthOfStep> sorted_steps = exits->steps;
    std::ranges::sort(sorted_steps, {}, &LengthOfStep::step);
    PutNumber(sorted_steps.size(), steps);
    uint32_t before = 0;
    for (const LengthOfStep& each : sorted_steps) {
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
