#include "guests/threads/lock_waits.h"

#include <algorithm>

namespace xenoscope::guests {

LockWait& LockWaits::SumOf(size_t thread, uint64_t lock, uint32_t flags) {
  if (sums_.size() >= kMaxSums && !sums_.contains({thread, lock, flags})) {
    lock = 0;
    flags = kUnknownLock;
  }
  LockWait& sum = sums_[{thread, lock, flags}];
  sum.thread = thread;
  sum.lock = lock;
  sum.flags = flags;
  return sum;
}

// Ends the waits from this one on, those within it included.
void LockWaits::Close(std::vector<OpenWait>& open, size_t thread, size_t from) {
  for (size_t i = from + 1; i < open.size(); ++i) ++SumOf(thread, open[i].lock, open[i].flags).cut;
  open_waits_ -= open.size() - from;
  open.resize(from);
  if (open_waits_ == 0) stolen_.clear();
}

void LockWaits::Begin(size_t thread, uint64_t lock, uint32_t flags, uint64_t losses, Tsc at,
                      const StateTimes& so_far) {
  std::vector<OpenWait>& open = open_[thread];
  if (std::ranges::find(open, lock, &OpenWait::lock) != open.end()) return;
  if (open.size() == kMaxDepth) {
    ++SumOf(thread, lock, flags).cut;
    return;
  }
  open.push_back({lock, flags, losses, at, so_far});
  ++open_waits_;
}

void LockWaits::End(size_t thread, uint64_t lock, uint64_t result, uint64_t losses, Tsc at,
                    const StateTimes& so_far) {
  std::vector<OpenWait>& open = open_[thread];
  const auto found = std::ranges::find(open, lock, &OpenWait::lock);
  if (found == open.end()) {
    ++SumOf(thread, lock, kUnknownLock).cut;
    return;
  }
  const OpenWait wait = *found;
  LockWait& sum = SumOf(thread, lock, wait.flags);
  const StateTimes times = Since(wait.before, so_far);
  const Cycles time = Sum(times);
  if (wait.losses != losses || time != at - wait.begin) {  // not all of it is known
    ++sum.cut;
  } else {
    ++sum.waits;
    if (result != 0) ++sum.failed;
    AddTo(sum.times, times);
    sum.longest = std::max(sum.longest, time);
    sum.others_stolen += StolenOfOthers(thread, {wait.begin, at});
  }
  Close(open, thread, static_cast<size_t>(found - open.begin()));
}

void LockWaits::Stolen(size_t thread, TscRange range) {
  if (open_waits_ == 0) return;
  if (stolen_.size() == kMaxStolen) stolen_.pop_front();
  stolen_.push_back({range, thread});
}

Cycles LockWaits::StolenOfOthers(size_t thread, TscRange range) {
  parts_.clear();
  for (size_t i = stolen_.size(); i-- > 0;) {
    const StolenRange& stolen = stolen_[i];
    if (stolen.range.end <= range.begin) break;  // those before ended earlier
    const TscRange part = stolen.range.Intersect(range);
    if (stolen.thread != thread && !part.Empty()) parts_.push_back(part);
  }
  std::ranges::sort(parts_, {}, &TscRange::begin);
  Cycles time = 0;
  Tsc counted = range.begin;
  for (const TscRange& part : parts_) {
    const TscRange rest{std::max(part.begin, counted), part.end};
    if (rest.Empty()) continue;
    time += rest.Length();
    counted = rest.end;
  }
  return time;
}

void LockWaits::Finish() {
  for (const auto& [thread, open] : open_) {
    for (const OpenWait& wait : open) ++SumOf(thread, wait.lock, wait.flags).cut;
  }
  open_.clear();
  open_waits_ = 0;
  stolen_.clear();
}

std::vector<LockWait> LockWaits::All() const {
  std::vector<LockWait> all;
  all.reserve(sums_.size());
  for (const auto& [key, sum] : sums_) all.push_back(sum);
  std::ranges::sort(
      all, {}, [](const LockWait& sum) { return std::tuple(sum.thread, sum.lock, sum.flags); });
  return all;
}

}  // namespace xenoscope::guests
