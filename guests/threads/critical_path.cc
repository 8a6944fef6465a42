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
    if (last.of == step.of && last.state == step.state && last.depth == step.depth) {
      last.range.end = step.range.end;
      return;
    }
  }
  path.push_back(step);
}

}  // namespace

PathFinder::Thread& PathFinder::At(DomainId domain, size_t thread) {
  std::vector<Thread>& threads = domains_[domain];
  if (thread >= threads.size()) threads.resize(thread + 1);
  return threads[thread];
}

const PathFinder::Thread* PathFinder::Known(Culprit thread) const {
  const auto domain = domains_.find(thread.domain);
  if (domain == domains_.end() || thread.thread >= domain->second.size()) return nullptr;
  return &domain->second[thread.thread];
}

void PathFinder::OnInterval(const ThreadInterval& interval) {
  TscRange part = interval.range.Intersect(range_);
  if (part.Empty()) return;
  std::vector<Interval>& intervals = At(interval.domain, interval.thread).intervals;
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
  if (wakeup.at < range_.begin || wakeup.at >= range_.end) return;
  is_full_ = is_full_ || kept_ == kMaxIntervals;
  if (is_full_) return;
  ++kept_;
  At(wakeup.domain, wakeup.woken)
      .wakeups.push_back({wakeup.at, wakeup.waker, wakeup.by_interrupt, wakeup.sender});
}

struct PathFinder::Task {
  Culprit thread;
  TscRange range;
  uint32_t depth = 0;
};

bool PathFinder::FollowWaker(const Task& task, const Thread& thread, TscRange part,
                             std::vector<Task>& tasks) const {
  const auto by = std::ranges::lower_bound(thread.wakeups, part.end, {}, &Wakeup::at);
  if (by == thread.wakeups.end() || by->at != part.end) return false;
  // What the waker did meanwhile comes first, then the rest of this thread's part.
  const Task rest{task.thread, {part.end, task.range.end}, task.depth};
  if (by->by_interrupt) {
    if (!by->sender || by->sender->at <= part.begin || by->sender->at > part.end) return false;
    tasks.push_back(rest);
    // From the event to the wake-up it sleeps on while its vCPU is put on a pCPU.
    tasks.push_back({task.thread, {by->sender->at, part.end}, task.depth});
    tasks.push_back({by->sender->by, {part.begin, by->sender->at}, task.depth + 1});
    return true;
  }
  if (by->waker == task.thread.thread) return false;
  tasks.push_back(rest);
  tasks.push_back({{task.thread.domain, by->waker}, part, task.depth + 1});
  return true;
}

absl::StatusOr<std::vector<PathStep>> PathFinder::Find(Culprit thread) const {
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
      AddStep({{task.thread.domain}, {at, until}, ThreadState::kLost, task.depth}, path);
      at = until;
    };
    const Thread* const known = Known(task.thread);
    if (known == nullptr) {
      unknown(task.range.end);
      continue;
    }
    const Thread& followed = *known;
    auto interval = std::ranges::upper_bound(followed.intervals, at, {},
                                             [](const Interval& each) { return each.range.end; });
    bool is_replaced = false;
    for (; interval != followed.intervals.end() && at < task.range.end; ++interval) {
      if (interval->range.begin >= task.range.end) break;
      if (interval->range.begin > at) unknown(interval->range.begin);
      const TscRange part = interval->range.Intersect({at, task.range.end});
      is_replaced = IsSleep(interval->state) && task.depth < kMaxDepth &&
                    part.end == interval->range.end && FollowWaker(task, followed, part, tasks);
      if (is_replaced) break;
      AddStep({task.thread, part, interval->state, task.depth}, path);
      at = part.end;
    }
    if (!is_replaced && at < task.range.end) unknown(task.range.end);
  }
  return path;
}

}  // namespace xenoscope::guests
