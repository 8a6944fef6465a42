#include "guests/threads/culprits.h"

namespace xenoscope::guests {

void WaitSums::Add(const Wait& wait) {
  Key key{wait.thread, wait.state, wait.scheduler, wait.by};
  auto found = sums_.find(key);
  if (found == sums_.end() && sums_.size() >= kMaxSums) {
    std::get<Culprit>(key).thread = Culprit::kNoThread;
    found = sums_.find(key);
  }
  if (found == sums_.end() && sums_.size() >= 2 * kMaxSums) return;
  if (found == sums_.end()) found = sums_.try_emplace(key, 0).first;
  found->second += wait.time;
}

std::vector<Wait> WaitSums::All() const {
  std::vector<std::pair<Key, Cycles>> sorted(sums_.begin(), sums_.end());
  std::ranges::sort(sorted);
  std::vector<Wait> all;
  all.reserve(sorted.size());
  for (const auto& [key, time] : sorted) {
    const auto& [thread, state, scheduler, by] = key;
    all.push_back({thread, state, scheduler, by, time});
  }
  return all;
}

void VcpuHistory::Join(Tsc at) {
  if (waiting_++ == 0) end_ = at;
}

void VcpuHistory::Leave() {
  if (--waiting_ > 0) return;
  entries_.clear();
  stolen_.clear();
}

void VcpuHistory::Add(TscRange range, Scheduler scheduler, Culprit by) {
  if (range.Empty()) return;
  end_ = range.end;
  if (!entries_.empty()) {
    Entry& last = entries_.back();
    if (last.range.end == range.begin && last.scheduler == scheduler && last.by == by) {
      last.range.end = range.end;
      return;
    }
  }
  entries_.push_back({range, scheduler, by});
  if (entries_.size() > kMaxEntries) entries_.pop_front();
}

void VcpuHistory::Ran(Tsc until, Culprit by) {
  if (waiting_ == 0) return;
  Add({end_, until}, Scheduler::kKernel, by);
}

void VcpuHistory::Stolen(TscRange range, Culprit by) {
  if (waiting_ == 0 || range.end <= end_) return;
  stolen_.push_back({range, Scheduler::kXen, by});
  if (stolen_.size() > kMaxEntries) stolen_.pop_front();
}

void VcpuHistory::Waited(Tsc until) {
  for (const Entry& stolen : stolen_) {
    Add({std::max(stolen.range.begin, end_), std::min(stolen.range.end, until)}, stolen.scheduler,
        stolen.by);
  }
  stolen_.clear();
  Skip(until);
}

}  // namespace xenoscope::guests
