// A number that changes in time: from one step to the next it stays the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>

#include "base/tsc.h"

namespace xenoscope::correlate {

class StepHistory {
 public:
  // The number of steps that are kept: the last ones.
  static constexpr size_t kMaxSteps = 65536;

  // Notes the value from `since` on, which is not before the last step. O(1).
  void Add(Tsc since, uint32_t value) {
    steps_.push_back({since, value});
    if (steps_.size() > kMaxSteps) steps_.pop_front();
  }
  // Returns the last value; 0 before the first step.
  [[nodiscard]] uint32_t Now() const { return steps_.empty() ? 0 : steps_.back().value; }

  // Calls visit(part, value) for the parts of the range that differ in the value, which is 0 before
  // the first step that is known. O(steps up to the range's end).
  template <typename Visitor>
  void ForEach(TscRange range, Visitor visit) const {
    uint32_t value = 0;
    Tsc from = range.begin;
    for (const Step& step : steps_) {
      if (step.since >= range.end) break;
      if (step.since > from) {
        visit(TscRange{from, step.since}, value);
        from = step.since;
      }
      value = step.value;
    }
    if (from < range.end) visit(TscRange{from, range.end}, value);
  }

  // Forgets the steps before `t`, but for the value at `t`. O(1) for each.
  void Forget(Tsc t) {
    while (steps_.size() > 1 && steps_[1].since <= t) steps_.pop_front();
  }

 private:
  struct Step {
    Tsc since;
    uint32_t value = 0;
  };
  std::deque<Step> steps_;
};

}  // namespace xenoscope::correlate
