#include "guests/threads/critical_path.h"

#include <algorithm>

#include "base/error.h"

namespace xenoscope::guests {
namespace {

bool IsSleep(ThreadState state) {
  return state == ThreadState::kSleeping || state == ThreadState::kUninterruptible;
}

void AddStep(const PathStep& step, std::vector<PathStep>& path) {
  if (step.range.Empty()) return;
  if (!path.empty()) {
    PathStep& last = path.back();
    if (last.thread == step.thread && last.state == step.state && last.depth == step.depth) {
      last.range.end = step.range.end;
      return;
    }
  }
  path.push_back(step);
}

}  // namespace

PathFinder::Thread& PathFinder::At(size_t thread) {
  if (thread >= threads_.size()) threads_.resize(thread + 1);
  return threads_[thread];
}

void PathFinder::OnInterval(const ThreadInterval& interval) {
  if (interval.domain != domain_) return;
  TscRange part = interval.range.Intersect(range_);
  if (part.Empty()) return;
  std::vector<Interval>& intervals = At(interval.thread).intervals;
  if (!intervals.empty()) {
    Interval& last = intervals.back();
    part.begin = std::max(part.begin, last.range.end);
    if (part.Empty()) return;
    if (last.state == interval.state && last.range.end == part.begin && interval.cpu) {
      last.range.end = part.end;
      return;
    }
  }
  is_full_ = is_full_ || kept_ == kMaxIntervals;
  if (is_full_) return;
  ++kept_;
  intervals.push_back({part, interval.state});
}

void PathFinder::OnWakeup(const ThreadWakeup& wakeup) {
  if (wakeup.domain != domain_ || wakeup.at < range_.begin || wakeup.at >= range_.end) return;
  is_full_ = is_full_ || kept_ == kMaxIntervals;
  if (is_full_) return;
  ++kept_;
  At(wakeup.woken).wakeups.push_back({wakeup.at, wakeup.waker, wakeup.by_interrupt});
}

const PathFinder::Wakeup* PathFinder::WakerOf(const Thread& thread, Tsc end) const {
  const auto found = std::ranges::lower_bound(thread.wakeups, end, {}, &Wakeup::at);
  if (found == thread.wakeups.end() || found->at != end || found->by_interrupt) return nullptr;
  return &*found;
}

struct PathFinder::Task {
  size_t thread = 0;
  TscRange range;
  uint32_t depth = 0;
};

absl::StatusOr<std::vector<PathStep>> PathFinder::Find(size_t thread) const {
  if (is_full_) {
    return ExhaustedError(
        "there are more than {} changes of threads in this time: choose less with --from and --to",
        kMaxIntervals);
  }
  std::vector<PathStep> path;
  std::vector<Task> tasks{{.thread = thread, .range = range_}};
  while (!tasks.empty()) {
    const Task task = tasks.back();
    tasks.pop_back();
    Tsc at = task.range.begin;
    const auto unknown = [&](Tsc until) {
      AddStep({PathStep::kUnknown, {at, until}, ThreadState::kLost, task.depth}, path);
      at = until;
    };
    if (task.thread >= threads_.size()) {
      unknown(task.range.end);
      continue;
    }
    const Thread& followed = threads_[task.thread];
    auto interval = std::ranges::upper_bound(followed.intervals, at, {},
                                             [](const Interval& each) { return each.range.end; });
    bool is_replaced = false;
    for (; interval != followed.intervals.end() && at < task.range.end; ++interval) {
      if (interval->range.begin >= task.range.end) break;
      if (interval->range.begin > at) unknown(interval->range.begin);
      const TscRange part = interval->range.Intersect({at, task.range.end});
      const Wakeup* const by =
          IsSleep(interval->state) && task.depth < kMaxDepth && part.end == interval->range.end
              ? WakerOf(followed, part.end)
              : nullptr;
      if (by == nullptr || by->waker == task.thread) {
        AddStep({task.thread, part, interval->state, task.depth}, path);
        at = part.end;
        continue;
      }
      // What the waker did meanwhile comes first, then the rest of this thread's part.
      tasks.push_back({task.thread, {part.end, task.range.end}, task.depth});
      tasks.push_back({by->waker, part, task.depth + 1});
      is_replaced = true;
      break;
    }
    if (!is_replaced && at < task.range.end) unknown(task.range.end);
  }
  return path;
}

}  // namespace xenoscope::guests
