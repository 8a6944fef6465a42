#include "report/html/page_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "guests/threads/container_name.h"
#include "report/html/packed.h"
#include "report/markup.h"

namespace xenoscope::report {
namespace {

using guests::GuestProcess;
using guests::GuestThread;
using guests::ThreadState;
using nlohmann::ordered_json;

// A thread that waits could run: its vCPU waits, or its kernel runs another thread.
TrackPart PartOfThread(ThreadState state) {
  switch (state) {
    case ThreadState::kGuest:
    case ThreadState::kXen:
    case ThreadState::kUntraced:
      return TrackPart::kFirst;
    case ThreadState::kStolen:
    case ThreadState::kWoken:
    case ThreadState::kPreempted:
      return TrackPart::kSecond;
    case ThreadState::kHalted:
    case ThreadState::kSleeping:
    case ThreadState::kUninterruptible:
      return TrackPart::kThird;
    case ThreadState::kVcpuLost:
    case ThreadState::kLost:
      break;
  }
  return TrackPart::kNone;
}

uint64_t NumberKeyOf(size_t domain, size_t thread) {
  return (uint64_t{domain} << 32U) + std::min<uint64_t>(thread, ~uint32_t{0});
}

}  // namespace

PageThreads::Domain* PageThreads::Find(DomainId domain) {
  const auto found =
      std::ranges::find(domains_, domain, [](const Domain& each) { return each.states->domain(); });
  return found == domains_.end() ? nullptr : &*found;
}

void PageThreads::OnInterval(const guests::ThreadInterval& interval) {
  Domain* const found = Find(interval.domain);
  if (found == nullptr || interval.thread >= found->states->threads().size()) return;
  // The idle threads' states are those of their vCPUs.
  if (found->states->threads()[interval.thread].tid == 0) return;
  if (interval.thread >= found->threads.size()) found->threads.resize(interval.thread + 1);
  // VM exits are in the rows of vCPUs.
  const ThreadState state =
      interval.state == ThreadState::kXen ? ThreadState::kGuest : interval.state;
  Row& thread = found->threads[interval.thread];
  Put(thread, static_cast<uint32_t>(state), PartOfThread(state), interval.range);
  const TscRange shown = interval.range.Intersect(shown_);
  if (!interval.cpu || shown.Empty()) return;
  thread.on_vcpus += shown.Length();
  if (*interval.cpu >= found->states->vcpus().size()) return;
  if (*interval.cpu >= found->vcpus.size()) found->vcpus.resize(*interval.cpu + 1);
  const uint64_t key = NumberKeyOf(static_cast<size_t>(found - domains_.data()), interval.thread);
  const auto number = numbers_.try_emplace(key, static_cast<uint32_t>(numbers_.size())).first;
  Put(found->vcpus[*interval.cpu], number->second, TrackPart::kFirst, interval.range);
}

void PageThreads::OnHandler(const guests::HandlerRun& run) {
  const Domain* const found = Find(run.domain);
  if (found != nullptr && run.cpu < found->states->vcpus().size()) handlers_.Add(run);
}

void PageThreads::Put(Row& row, uint32_t code, TrackPart part, TscRange range) {
  const TscRange part_shown =
      TscRange{std::max(range.begin, row.open.end), range.end}.Intersect(shown_);
  if (part_shown.Empty()) return;
  if (!row.open.Empty() && row.code == code && row.open.end == part_shown.begin) {
    row.open.end = part_shown.end;
    return;
  }
  Close(row);
  row.open = part_shown;
  row.code = code;
  row.part = part;
}

void PageThreads::Close(Row& row) {
  if (row.open.Empty()) return;
  limit_.Add(row.track, row.code, row.part, row.open.begin - shown_.begin, row.open.Length(),
             [this](auto visit) {
               for (Domain& domain : domains_) {
                 for (Row& each : domain.threads) visit(each.track);
                 for (Row& each : domain.vcpus) visit(each.track);
               }
             });
}

std::vector<PageThreads::ThreadRef> PageThreads::OnVcpus() const {
  std::vector<std::pair<Cycles, ThreadRef>> all;
  for (size_t i = 0; i < domains_.size(); ++i) {
    for (size_t k = 0; k < domains_[i].threads.size(); ++k) {
      const Cycles time = domains_[i].threads[k].on_vcpus;
      if (time > 0) all.push_back({time, {i, k}});
    }
  }
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<ThreadRef> threads;
  threads.reserve(all.size());
  for (const auto& [time, thread] : all) threads.push_back(thread);
  return threads;
}

absl::StatusOr<ordered_json> PageThreads::ToJson(
    const std::function<std::string(DomainId)>& label) {
  std::vector<IntervalTrack*> tracks;  // of the page
  const auto put = [&](Row& row) {
    Close(row);
    tracks.push_back(&row.track);
  };
  ordered_json vcpus = ordered_json::array();
  for (Domain& domain : domains_) {
    const std::string name = label(domain.states->domain());
    for (size_t cpu = 0; cpu < domain.vcpus.size(); ++cpu) {
      vcpus.push_back(fmt::format("{} v{}", name, cpu));
      put(domain.vcpus[cpu]);
    }
  }
  std::vector<ThreadRef> longest = OnVcpus();
  const size_t all = longest.size();
  if (all > kMaxThreads) longest.resize(kMaxThreads);
  ordered_json list = ordered_json::array();
  ordered_json numbers = ordered_json::array();
  for (size_t i = 0; i < numbers_.size(); ++i) numbers.push_back(-1);
  for (const auto& [domain, thread] : longest) {
    const GuestThread& described = domains_[domain].states->threads()[thread];
    const GuestProcess& process = domains_[domain].states->processes()[described.process];
    const auto number = numbers_.find(NumberKeyOf(domain, thread));
    if (number != numbers_.end()) numbers[number->second] = list.size();
    list.push_back({{"domain", label(domains_[domain].states->domain())},
                    {"container", Printable(guests::ContainerName(process.cgroup))},
                    {"process", Printable(process.name)},
                    {"pid", process.pid},
                    {"name", Printable(described.name)},
                    {"tid", described.tid}});
    put(domains_[domain].threads[thread]);
  }
  XENOSCOPE_RETURN_IF_ERROR(limit_.Fit(kMaxIntervalBytes, [&](auto visit) {
    for (IntervalTrack* track : tracks) visit(*track);
  }));
  ordered_json out{{"list", std::move(list)},
                   {"left_out", all - longest.size()},
                   {"vcpus", std::move(vcpus)},
                   {"numbers", std::move(numbers)},
                   {"rows", limit_.packed().ToJson()}};
  XENOSCOPE_ASSIGN_OR_RETURN(out["handlers"], handlers_.ToJson(label));
  return out;
}

}  // namespace xenoscope::report
