#include "report/html/exit_counts.h"

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>
#include <numeric>
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

using correlate::Mark;
using correlate::MarkKind;
using nlohmann::ordered_json;

}  // namespace

ExitCounts::Exits& ExitCounts::FindExits(const Key& key) {
  const auto next = static_cast<uint32_t>(exits_.size());
  const auto [at, is_new] = numbers_.try_emplace(key.AsNumber(), next);
  if (is_new) exits_.push_back({.key = key, .key_number = key.AsNumber(), .number = next});
  return exits_[at->second];  // a deque's elements stay where they are
}

uint32_t ExitCounts::StepKeyOf(Exits& exits, uint32_t step) {
  const auto known = std::ranges::find(exits.step_keys, step, &StepKey::step);
  if (known != exits.step_keys.end()) return known->key;
  exits.step_keys.push_back({.step = step, .key = all_length_keys_++});
  return exits.step_keys.back().key;
}

void ExitCounts::CloseSteps(Exits& exits) {
  for (uint32_t word = 0; word < exits.has_step.size(); ++word) {
    for (uint64_t bits = std::exchange(exits.has_step[word], 0); bits != 0; bits &= bits - 1) {
      const uint32_t step = 64 * word + static_cast<uint32_t>(std::countr_zero(bits));
      const auto count = static_cast<double>(std::exchange(exits.by_step[step], 0));
      lengths_.Add(StepKeyOf(exits, step), {exits.steps_at, exits.steps_at}, count);
    }
  }
}

ExitCounts::Several ExitCounts::SeveralOf(std::span<const Tsc> begins,
                                          std::span<const Cycles> lengths) {
  const uint64_t first = begins.front().value;
  uint64_t differences = 0;
  for (size_t i = 0; i < begins.size(); ++i) {
    const uint64_t begin = begins[i].value;
    differences |= (begin ^ first) | ((begin + lengths[i]) ^ first);
  }
  return {begins, lengths, differences};
}

void ExitCounts::CountTimes(Exits& exits, const Several& all) {
  const uint64_t cycles = std::accumulate(all.lengths.begin(), all.lengths.end(), uint64_t{0});
  exits.cycles += cycles;
  if (cycles_.AreInBinOf(exits.open_cycles.at, all.begins.front(), all.differences)) {
    exits.open_cycles.amount += static_cast<double>(cycles);
    return;
  }
  for (size_t i = 0; i < all.begins.size(); ++i) {
    cycles_.Add(exits.number, {all.begins[i], all.begins[i] + all.lengths[i]},
                static_cast<double>(all.lengths[i]), exits.open_cycles);
  }
}

void ExitCounts::CountLengths(Exits& exits, const Several& all) {
  const Tsc first = all.begins.front();
  exits.count += all.begins.size();
  if (counts_.AreInBinOf(exits.open_count.at, first, all.differences)) {
    exits.open_count.amount += static_cast<double>(all.begins.size());
  } else {
    for (const Tsc begin : all.begins) counts_.AddAt(exits.number, begin, 1, exits.open_count);
  }
  const bool in_one_bin = lengths_.AreInBinOf(exits.steps_at, first, all.differences);
  for (size_t i = 0; i < all.begins.size(); ++i) {
    if (!in_one_bin && !lengths_.AreInBinOf(exits.steps_at, all.begins[i], 0)) {
      CloseSteps(exits);
      exits.steps_at = all.begins[i];
    }
    const uint32_t step = LengthStep(all.lengths[i]);
    if (exits.by_step[step]++ == 0) exits.has_step[step / 64] |= uint64_t{1} << step % 64;
  }
  exits.lengths.AddAll(all.lengths, Weighting::kByCount);
}

void ExitCounts::CountWaiting(Exits& exits) {
  if (exits.waiting == 0) return;
  const Several all = SeveralOf(std::span(exits.begins_waiting).first(exits.waiting),
                                std::span(exits.lengths_waiting).first(exits.waiting));
  CountTimes(exits, all);
  CountLengths(exits, all);
  exits.waiting = 0;
}

void ExitCounts::AddMark(const CountedExit& mark) {
  Exits& exits = ExitsOf({mark.domain, mark.cause, mark.reason & 0xffU});
  const uint32_t number = mark.reason >> 8U;
  if (number >= exits.parts.size()) [[unlikely]] {
    exits.parts.resize(size_t{number} + 1);
  }
  Sum& part = exits.parts[number];
  ++part.count;
  part.cycles += mark.length;
  Add(exits, mark.begin, mark.length);
}

void ExitCounts::Take(std::span<const CountedExit> exits, double part_come) {
  for (correlate::BinnedSums* sums : {&counts_, &cycles_, &lengths_}) sums->SetPartCome(part_come);
  for (const CountedExit& each : exits) {
    if (each.cause == ExitCause::kMark) {
      AddMark(each);
      continue;
    }
    Exits& same = ExitsOf({each.domain, each.cause, each.reason});
    switch (each.counted) {
      case Counted::kAll:
        Add(same, each.begin, each.length);
        break;
      case Counted::kLength:
        CountLengths(same, SeveralOf({&each.begin, 1}, {&each.length, 1}));
        break;
      case Counted::kTime:
        CountTimes(same, SeveralOf({&each.begin, 1}, {&each.length, 1}));
        break;
    }
  }
}

void ExitCounts::Finish() {
  for (Exits& exits : exits_) {
    CountWaiting(exits);
    counts_.Close(exits.number, exits.open_count);
    cycles_.Close(exits.number, exits.open_cycles);
    CloseSteps(exits);
  }
  for (correlate::BinnedSums* sums : {&counts_, &cycles_, &lengths_}) sums->Finish();
}

std::string ExitCounts::NameOf(const Key& key) const {
  if (key.cause == ExitCause::kMark) return MarkKindName(static_cast<MarkKind>(key.reason));
  return trace::ExitName(report_.vendor, key.cause == ExitCause::kNestedExit, key.reason);
}

ordered_json ExitCounts::ExitJson(const Exits& exits) const {
  const Key& key = exits.key;
  ordered_json json{{"domain", DomainLabel(key.domain, report_.domain_name(key.domain))},
                    {"name", NameOf(key)},
                    {"count", exits.count},
                    {"cycles", exits.cycles},
                    {"at_most", key.cause == ExitCause::kMark},
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

absl::StatusOr<ordered_json> ExitCounts::ToJson(Tsc zero) const {
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
