#include "guests/threads/syscalls.h"

#include <algorithm>
#include <tuple>

namespace xenoscope::guests {
namespace {

// The errors that a call returns: -4095 to -1 (include/linux/err.h).
constexpr uint64_t kFirstError = ~uint64_t{0} - 4094;

}  // namespace

Syscall& Syscalls::SumOf(size_t thread, uint64_t number) {
  if (sums_.size() >= kMaxSums && !sums_.contains({thread, number})) number = kOtherSyscalls;
  Syscall& sum = sums_[{thread, number}];
  sum.thread = thread;
  sum.number = number;
  return sum;
}

void Syscalls::Enter(size_t thread, uint64_t number, uint64_t losses, Tsc at,
                     const StateTimes& so_far) {
  const auto [open, is_new] = open_.try_emplace(thread);
  if (!is_new) ++SumOf(thread, open->second.number).cut;
  open->second = {number, losses, at, so_far};
}

void Syscalls::Return(size_t thread, uint64_t number, uint64_t result, uint64_t losses, Tsc at,
                      const StateTimes& so_far) {
  Syscall& sum = SumOf(thread, number);
  const auto found = open_.find(thread);
  if (found == open_.end()) {
    ++sum.cut;
    return;
  }
  const OpenCall call = found->second;
  open_.erase(found);
  if (call.number != number) {
    ++sum.cut;
    ++SumOf(thread, call.number).cut;
    return;
  }
  const StateTimes times = Since(call.before, so_far);
  const Cycles time = Sum(times);
  if (call.losses != losses || time != at - call.begin) {  // not all of it is known
    ++sum.cut;
    return;
  }
  ++sum.calls;
  if (result >= kFirstError) ++sum.errors;
  AddTo(sum.times, times);
  sum.longest = std::max(sum.longest, time);
}

void Syscalls::Finish() {
  for (const auto& [thread, call] : open_) ++SumOf(thread, call.number).cut;
  open_.clear();
}

std::vector<Syscall> Syscalls::All() const {
  std::vector<Syscall> all;
  all.reserve(sums_.size());
  for (const auto& [key, sum] : sums_) all.push_back(sum);
  std::ranges::sort(all, {}, [](const Syscall& sum) { return std::pair(sum.thread, sum.number); });
  return all;
}

}  // namespace xenoscope::guests
