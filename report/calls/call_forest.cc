#include "report/calls/call_forest.h"

#include <algorithm>
#include <utility>

namespace xenoscope::report {
namespace {

using guests::CallNode;

constexpr const char* kLostCallers = "[callers not known]";

CallSums SumsOf(const CallNode& node) {
  return {.calls = node.calls + node.counted,
          .cut = node.cut,
          .timed = node.calls,
          .total = node.total,
          .self = node.self,
          .longest = node.longest};
}

}  // namespace

void CallSums::Add(const CallSums& more, bool with_total) {
  calls += more.calls;
  cut += more.cut;
  timed += more.timed;
  if (with_total) guests::AddTo(total, more.total);
  guests::AddTo(self, more.self);
  longest = std::max(longest, more.longest);
}

size_t CallForest::NumberOf(const std::string& name) {
  const auto [found, is_new] = number_of_.try_emplace(name, names_.size());
  if (is_new) names_.push_back(name);
  return found->second;
}

size_t CallForest::CallOf(size_t group, size_t caller, size_t function) {
  const auto [found, is_new] = call_of_.try_emplace({group, caller, function}, calls_.size());
  if (!is_new) return found->second;
  calls_.push_back({.function = function, .caller = caller});
  std::vector<size_t>& calls =
      caller == MergedCall::kNone ? groups_[group].outermost : calls_[caller].callees;
  calls.push_back(found->second);
  return found->second;
}

void CallForest::Add(std::span<const CallNode> nodes, const NameOf& name_of,
                     const GroupOf& group_of) {
  absl::flat_hash_map<Address, size_t> function_of;
  function_of[CallNode::kLostCallers] = NumberOf(kLostCallers);
  std::vector<std::optional<size_t>> group(nodes.size());
  std::vector<size_t> merged(nodes.size(), MergedCall::kNone);
  for (size_t i = 0; i < nodes.size(); ++i) {
    const CallNode& node = nodes[i];
    if (node.caller == CallNode::kNone) {
      group[i] = group_of(node.thread, node.part);
      if (group[i] && *group[i] >= groups_.size()) groups_.resize(*group[i] + 1);
      continue;
    }
    group[i] = group[node.caller];
    if (!group[i]) continue;
    const auto [function, is_new] = function_of.try_emplace(node.function);
    if (is_new) function->second = NumberOf(name_of(node.function));
    merged[i] = CallOf(*group[i], merged[node.caller], function->second);
    const CallSums sums = SumsOf(node);
    calls_[merged[i]].sums.Add(sums);
    groups_[*group[i]].sums.Add(sums, /*with_total=*/merged[node.caller] == MergedCall::kNone);
  }
}

std::vector<size_t> CallForest::CallsOf(size_t group) const {
  std::vector<size_t> calls = groups_[group].outermost;
  for (size_t i = 0; i < calls.size(); ++i) {
    const std::vector<size_t>& callees = calls_[calls[i]].callees;
    calls.insert(calls.end(), callees.begin(), callees.end());
  }
  return calls;
}

std::vector<CalledFunction> CallForest::FunctionsOf(size_t group) const {
  std::map<size_t, CallSums> sums;
  for (const size_t call : CallsOf(group)) {
    const MergedCall& merged = calls_[call];
    if (merged.sums.calls + merged.sums.cut == 0) continue;  // it stands for callers
    bool is_within_itself = false;
    for (size_t at = merged.caller; at != MergedCall::kNone; at = calls_[at].caller) {
      is_within_itself |= calls_[at].function == merged.function;
    }
    sums[merged.function].Add(merged.sums, !is_within_itself);
  }
  std::vector<CalledFunction> functions;
  functions.reserve(sums.size());
  for (const auto& [function, sum] : sums) functions.push_back({function, sum});
  std::ranges::stable_sort(functions, std::ranges::greater(), [](const CalledFunction& function) {
    return std::pair(function.sums.calls, guests::Sum(function.sums.self));
  });
  return functions;
}

std::vector<bool> CallForest::LongestOf(size_t group, size_t limit) const {
  std::vector<size_t> calls = CallsOf(group);
  if (limit != 0 && calls.size() > limit) {
    // Where kernels do not say how long calls take, their numbers decide, also those within.
    absl::flat_hash_map<size_t, uint64_t> within;
    for (size_t i = calls.size(); i-- > 0;) {
      const MergedCall& call = calls_[calls[i]];
      const uint64_t all = within[calls[i]] += call.sums.calls + call.sums.cut;
      if (call.caller != MergedCall::kNone) within[call.caller] += all;
    }
    // Callers are before those that they call, and stay there where the times are the same.
    std::ranges::stable_sort(calls, std::ranges::greater(), [&](size_t call) {
      return std::pair(guests::Sum(calls_[call].sums.total), within[call]);
    });
    calls.resize(limit);
  }
  std::vector<bool> shown(calls_.size());
  for (const size_t call : calls) shown[call] = true;
  return shown;
}

}  // namespace xenoscope::report
