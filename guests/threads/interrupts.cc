#include "guests/threads/interrupts.h"

#include <algorithm>
#include <array>

namespace xenoscope::guests {
namespace {

// By vector (include/linux/interrupt.h).
constexpr std::array<std::string_view, 10> kSoftirqNames{
    "HI", "TIMER", "NET_TX", "NET_RX", "BLOCK", "IRQ_POLL", "TASKLET", "SCHED", "HRTIMER", "RCU"};

}  // namespace

std::string_view HandlerName(const InterruptKey& key) {
  if (!key.is_soft) return key.name;
  return key.number < kSoftirqNames.size() ? kSoftirqNames.at(key.number) : std::string_view();
}

Interrupt& Interrupts::SumOf(InterruptKey key) {
  if (sums_.size() >= kMaxSums && !sums_.contains(key)) key = {};
  Interrupt& sum = sums_[key];
  sum.key = std::move(key);
  return sum;
}

void Interrupts::Begin(size_t cpu, InterruptKey key, const Now& now) {
  std::vector<Run>& open = open_[cpu];
  if (open.size() == kMaxDepth) {
    ++SumOf(std::move(key)).cut;
    return;
  }
  open.push_back({std::move(key), now.at, now.losses, now.so_far, {}});
}

std::optional<Interrupts::Ended> Interrupts::End(size_t cpu, bool is_soft, uint64_t number,
                                                 const Now& now) {
  std::vector<Run>& open = open_[cpu];
  if (open.empty() || open.back().key.is_soft != is_soft || open.back().key.number != number) {
    ++SumOf({is_soft, number, ""}).cut;
    Reset(cpu);
    return std::nullopt;
  }
  const Run run = std::move(open.back());
  open.pop_back();
  Interrupt& sum = SumOf(run.key);
  if (run.losses != now.losses) {
    ++sum.cut;
    return std::nullopt;
  }
  ++sum.runs;
  const StateTimes times = Since(run.before, now.so_far);
  const StateTimes own = Since(run.inner, times);
  if (!open.empty()) AddTo(open.back().inner, times);
  AddTo(sum.times, own);
  sum.longest = std::max(sum.longest, Sum(own));
  return Ended{sum.key, {run.begin, now.at}};
}

void Interrupts::Reset(size_t cpu) {
  for (Run& run : open_[cpu]) ++SumOf(std::move(run.key)).cut;
  open_[cpu].clear();
}

std::vector<Interrupt> Interrupts::All() const {
  std::vector<Interrupt> all;
  all.reserve(sums_.size());
  for (const auto& [key, sum] : sums_) all.push_back(sum);
  std::ranges::sort(all, {}, &Interrupt::key);
  return all;
}

}  // namespace xenoscope::guests
