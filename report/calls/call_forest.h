// The calls of functions of kernels, as views show them: joined by the names of functions, in
// groups, such as the phases of a boot or processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/mode.h"
#include "base/tsc.h"
#include "guests/threads/call_trees.h"
#include "guests/threads/state_times.h"

namespace xenoscope::report {

// Sums of calls.
struct CallSums {
  uint64_t calls = 0;  // also those of which the kernel does not say when they end
  uint64_t cut = 0;    // of which only the begin or only the end is known
  uint64_t timed = 0;  // of `calls`, those that have a time
  guests::StateTimes total{};
  guests::StateTimes self{};  // without the calls within them
  Cycles longest = 0;

  // `with_total`: the calls of `more` are not within those of this.
  void Add(const CallSums& more, bool with_total = true);
};

// The calls of one function by one path of callers.
struct MergedCall {
  static constexpr size_t kNone = ~size_t{0};

  size_t function = 0;    // index of its name
  size_t caller = kNone;  // index, less than its own; kNone: the outermost call
  std::vector<size_t> callees{};
  CallSums sums{};
};

// A function of a group, wherever it was called.
struct CalledFunction {
  size_t function = 0;  // index of its name
  CallSums sums;        // `total` has calls within calls of the same function once
};

class CallForest {
 public:
  using NameOf = std::function<std::string(Address)>;
  // Returns the group of a thread's calls in a part of time; nothing: they are left out.
  using GroupOf = std::function<std::optional<size_t>(size_t thread, uint32_t part)>;

  // Adds the calls of one kernel. O(nodes).
  void Add(std::span<const guests::CallNode> nodes, const NameOf& name_of, const GroupOf& group_of);

  [[nodiscard]] size_t groups() const { return groups_.size(); }
  [[nodiscard]] const std::string& NameOfFunction(size_t function) const {
    return names_[function];
  }
  [[nodiscard]] const MergedCall& Call(size_t call) const { return calls_[call]; }
  // Returns the outermost calls of the group, and the sum of all its calls.
  [[nodiscard]] const std::vector<size_t>& Outermost(size_t group) const {
    return groups_[group].outermost;
  }
  [[nodiscard]] const CallSums& SumOf(size_t group) const { return groups_[group].sums; }
  // Returns the group's functions, those called most first. O(calls * depth).
  [[nodiscard]] std::vector<CalledFunction> FunctionsOf(size_t group) const;
  // Returns the calls of the group to be shown, by index: the `limit` of the longest total time,
  // which have their callers with them; 0: all. O(calls log calls).
  [[nodiscard]] std::vector<bool> LongestOf(size_t group, size_t limit) const;

 private:
  struct Group {
    std::vector<size_t> outermost;
    CallSums sums;
  };

  size_t NumberOf(const std::string& name);
  size_t CallOf(size_t group, size_t caller, size_t function);
  // Returns the group's calls, callers before those that they call.
  [[nodiscard]] std::vector<size_t> CallsOf(size_t group) const;

  std::vector<std::string> names_;
  std::map<std::string, size_t> number_of_;
  // By group, caller and function.
  absl::flat_hash_map<std::tuple<size_t, size_t, size_t>, size_t> call_of_;
  std::vector<MergedCall> calls_;
  std::vector<Group> groups_;
};

}  // namespace xenoscope::report
