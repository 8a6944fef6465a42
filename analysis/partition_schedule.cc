#include "analysis/partition_schedule.h"

#include <algorithm>

namespace xenoscope::analysis {
namespace {

// Least rest of a partition that is worth another one, as a part of the trace: its warm-up takes as
// long as a hundredth.
constexpr size_t kLeastRest = 32;
constexpr size_t kLeastSteps = 2;

}  // namespace

PartitionSchedule::PartitionSchedule(size_t steps, const std::vector<size_t>& starts)
    : steps_(steps) {
  for (size_t i = 0; i < starts.size(); ++i) {
    rests_[starts[i]] = {starts[i], i + 1 < starts.size() ? starts[i + 1] : steps};
  }
}

std::optional<size_t> PartitionSchedule::TakeStep(size_t partition) {
  const std::lock_guard lock(mutex_);
  Rest& rest = rests_.at(partition);
  if (rest.next == rest.end) return std::nullopt;
  return rest.next++;
}

std::optional<size_t> PartitionSchedule::Split() {
  const std::lock_guard lock(mutex_);
  const auto left = [](const auto& partition) {
    return partition.second.end - partition.second.next;
  };
  const auto most = std::ranges::max_element(rests_, {}, left);
  const size_t least = std::max(kLeastSteps, (steps_ + kLeastRest - 1) / kLeastRest);
  if (most == rests_.end() || left(*most) < least) return std::nullopt;
  Rest& rest = most->second;
  const size_t begin = rest.next + (left(*most) + 1) / 2;
  rests_[begin] = {begin, rest.end};
  rest.end = begin;
  return begin;
}

}  // namespace xenoscope::analysis
