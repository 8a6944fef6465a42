#include "guests/threads/xen_times.h"

#include <algorithm>
#include <tuple>

namespace xenoscope::guests {
namespace {

using correlate::ExitContents;
using correlate::ExitKind;

// An event may put another thread on a vCPU whose exit is handled where the guest's clock is not
// exact, or the guest lies.
constexpr size_t kMaxThreadsOfExit = 16;

XenReason ReasonOf(const ExitContents& exit) {
  constexpr uint64_t kWithoutFlags = (uint64_t{1} << correlate::kShadowFlagsShift) - 1;
  const bool has_flags = exit.kind == ExitKind::kPageFault;
  return {.kind = EntryKind::kExit,
          .nested = exit.nested,
          .reason = exit.reason,
          .exit_kind = exit.kind,
          .number = has_flags ? exit.number & kWithoutFlags : exit.number};
}

}  // namespace

void XenTimes::Handled(size_t cpu, const HandledExit& exit, size_t thread, Cycles time) {
  if (exit.number == 0) return Add(thread, {.kind = EntryKind::kResume}, 0, time);
  OpenExit& open = open_[cpu];
  Open(open, exit.number);
  open.contents.nested = exit.nested;
  open.contents.reason = exit.reason;
  if (open.threads.empty() || open.threads.back().first != thread) {
    if (open.threads.size() == kMaxThreadsOfExit) Close(open);
    open.threads.emplace_back(thread, 0);
  }
  open.threads.back().second += time;
}

void XenTimes::TakeRecord(size_t cpu, uint64_t exit, const trace::Record& record) {
  OpenExit& open = open_[cpu];
  Open(open, exit);
  open.contents.Take(record);
}

void XenTimes::Open(OpenExit& open, uint64_t exit) {
  if (open.contents.exit == exit) return;
  Close(open);
  open.contents.Open(exit);
  open.is_counted = false;
}

void XenTimes::Close(OpenExit& open) {
  for (const auto& [thread, time] : open.threads) {
    Add(thread, ReasonOf(open.contents), open.is_counted ? 0 : 1, time);
    open.is_counted = true;
  }
  open.threads.clear();
}

void XenTimes::Add(size_t thread, XenReason reason, uint64_t entries, Cycles time) {
  if (sums_.size() >= kMaxSums && !sums_.contains({thread, reason})) {
    reason = {.kind = EntryKind::kOthers};
  }
  Sum& sum = sums_[{thread, reason}];
  sum.entries += entries;
  sum.time += time;
}

void XenTimes::Finish() {
  for (OpenExit& open : open_) Close(open);
}

std::vector<XenTime> XenTimes::All() const {
  std::vector<XenTime> all;
  all.reserve(sums_.size());
  for (const auto& [key, sum] : sums_) {
    all.push_back(
        {.thread = key.first, .reason = key.second, .entries = sum.entries, .time = sum.time});
  }
  std::ranges::sort(all, {},
                    [](const XenTime& time) { return std::tuple(time.thread, time.reason); });
  return all;
}

}  // namespace xenoscope::guests
