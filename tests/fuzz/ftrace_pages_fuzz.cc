// Fuzzes what a guest sends of its kernel's trace: the formats of events, and a page. There is no
// crash, no hang, no read outside of the page, its bytes add up, and so do the times of threads, of
// their culprits, of the boot and the shutdown, of critical paths, of what its kernel says of it,
// and the events that bound the guest's clock. Bytes 0..1 are the size of the formats, which
// follow; the rest is the page.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "guests/boot/boot.h"
#include "guests/boot/boot_phases.h"
#include "guests/clock/claimed_times.h"
#include "guests/clock/kernel_clock.h"
#include "guests/ftrace/formats.h"
#include "guests/ftrace/kernel_event.h"
#include "guests/ftrace/kernel_trace.h"
#include "guests/ftrace/page_reader.h"
#include "guests/shutdown/shutdown.h"
#include "guests/shutdown/shutdown_phases.h"
#include "guests/threads/critical_path.h"
#include "guests/threads/follow_threads.h"
#include "guests/threads/thread_states.h"
#include "recording/sample_writer.h"
#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace {

using xenoscope::Bytes;
namespace guests = xenoscope::guests;

constexpr uint32_t kMaxPage = 1U << 16;
constexpr xenoscope::DomainId kGuest{1};

// Returns Xen's trace, in which the guest's vCPU 0 has a VM exit every 1024 cycles, and waits for
// dom0's every 4096.
const xenoscope::trace::TraceFile& Xen() {
  namespace trace = xenoscope::trace;
  static const trace::TraceBuilder bytes = [] {
    const uint32_t dom0 = trace::Vcpu(0, 0);
    std::vector<std::vector<uint32_t>> records = {
        trace::Rec(trace::kRunnableToRunning, 0, {trace::kD1V0})};
    for (uint64_t at = 512; at < 40'000; at += 1024) {
      records.push_back(trace::Rec(trace::kVmentry, at, {}));
      records.push_back(trace::Rec(trace::kVmexit64, at + 512, {trace::kVmexitCpuid, 0x1000, 0}));
      if (at % 4096 != 512) continue;
      records.push_back(trace::Rec(trace::kRunningToRunnable, at + 600, {trace::kD1V0}));
      records.push_back(trace::Rec(trace::kRunnableToRunning, at + 600, {dom0}));
      records.push_back(trace::Rec(trace::kRunningToRunnable, at + 900, {dom0}));
      records.push_back(trace::Rec(trace::kRunnableToRunning, at + 900, {trace::kD1V0}));
    }
    trace::TraceBuilder builder;
    builder.Window(0, records);
    return builder;
  }();
  static const auto file = trace::TraceFile::FromBytes(bytes.bytes(), "xen");
  return *file;
}

// Each event agrees with the offset, contradicts it, or is beside the trace.
void CheckClock(const guests::KernelTrace& kernel) {
  uint64_t events = 0;
  for (size_t cpu = 0; cpu < kernel.cpus(); ++cpu) {
    guests::CpuCursor cursor(kernel, cpu);
    while (cursor.Next()) ++events;
  }
  const guests::KernelTrace* const all[] = {&kernel};
  for (const bool with_trace : {true, false}) {
    const auto* const xen = with_trace ? &Xen() : nullptr;
    const guests::KernelClock clock = guests::FindKernelClocks(all, xen).at(0);
    if (clock.inside + clock.outside + clock.untraced != events) std::abort();
    for (const guests::ClockEpoch& epoch : clock.epochs) {
      const bool is_possible = std::ranges::any_of(epoch.ranges, [&epoch](const auto& range) {
        return range.min <= epoch.offset && epoch.offset <= range.max;
      });
      if (!is_possible) std::abort();
    }
  }
}

// Whatever a kernel says of its vCPUs' time, what is true adds up to it.
void CheckClaims(const guests::KernelTrace& kernel) {
  const guests::KernelTrace* const all[] = {&kernel};
  const std::vector<guests::KernelClock> clocks = guests::FindKernelClocks(all, &Xen());
  const auto claims =
      guests::CompareClaims(all, clocks, xenoscope::Clock{.hz = 1'000'000'000}, &Xen());
  if (!claims.ok()) std::abort();
  for (const guests::ClaimedTimes& vcpu : claims->vcpus) {
    const xenoscope::Cycles known =
        vcpu.ran + vcpu.waited + vcpu.blocked + vcpu.offline + vcpu.unknown;
    if (known != vcpu.range.Length()) std::abort();
  }
}

// No thread waited for less time than its culprits have.
void CheckWaits(const guests::ThreadStates& states) {
  constexpr guests::ThreadState kStates[] = {
      guests::ThreadState::kStolen, guests::ThreadState::kWoken, guests::ThreadState::kPreempted};
  std::map<std::pair<size_t, guests::WaitState>, xenoscope::Cycles> taken;
  for (const guests::Wait& wait : states.Waits()) taken[{wait.thread, wait.state}] += wait.time;
  for (const auto& [key, time] : taken) {
    const auto state = static_cast<size_t>(kStates[static_cast<size_t>(key.second)]);
    if (time > states.threads()[key.first].times[state]) std::abort();
  }
}

// The steps of each path are all of its range, one after the other.
void CheckPaths(const guests::PathFinder& finder, xenoscope::TscRange range, size_t threads) {
  for (size_t thread = 0; thread <= threads; ++thread) {
    const auto path = finder.Find({kGuest, thread});
    if (!path.ok()) std::abort();
    xenoscope::Tsc end = range.begin;
    for (const guests::PathStep& step : *path) {
      if (step.range.begin != end || step.range.Empty()) std::abort();
      end = step.range.end;
    }
    if (end != range.end) std::abort();
  }
}

// The phases of a boot are in the order of time, and their times add up.
void CheckBoot(const guests::KernelTrace& kernel) {
  auto phases = guests::FindBootPhases(kernel, guests::EventClock::Fixed(0), {}, "");
  if (!phases.ok()) return;
  const auto boot = guests::FollowBoot(kGuest, *std::move(phases), Xen());
  if (!boot.ok()) std::abort();
  xenoscope::Tsc end = boot->phases.front().when.begin;
  for (const guests::Phase& phase : boot->phases) {
    if (phase.when.begin != end || phase.when.end < end) std::abort();
    end = phase.when.end;
  }
  for (size_t i = 0; i < boot->initcall_times.size(); ++i) {
    const guests::BootInitcall& initcall = boot->kernel.initcalls[i];
    if (initcall.when.end < initcall.when.begin) std::abort();
    if (initcall.by_boot && boot->initcall_times[i].Sum() != initcall.when.Length()) std::abort();
  }
}

// The phases of a shutdown are in the order of time, and so are their processes; times add up.
void CheckShutdown(const guests::KernelTrace& kernel) {
  using xenoscope::recording::DomainChange;
  auto found = guests::FindShutdownPhases(kernel, guests::EventClock::Fixed(0), "");
  if (!found.ok()) std::abort();
  for (const guests::EndedProcess& process : found->processes) {
    if (process.when.end < process.when.begin) std::abort();
  }
  const std::vector<DomainChange> changes{
      {.kind = DomainChange::Kind::kDestroyed, .domain = kGuest, .vcpu = std::nullopt, .when = {}}};
  const auto shutdown = guests::FollowShutdown(kGuest, *std::move(found), changes, Xen());
  if (!shutdown.ok()) std::abort();
  xenoscope::Tsc end = shutdown->phases.front().when.begin;
  for (const guests::Phase& phase : shutdown->phases) {
    if (phase.when.begin != end || phase.when.end < end) std::abort();
    if (phase.times.Sum() != phase.when.Length() * shutdown->vcpus.size()) std::abort();
    end = phase.when.end;
  }
}

// Follows threads through the page as that of two CPUs, and once more after itself. The page has
// what the guest answered about its clock, too.
void FollowThreads(Bytes formats, Bytes page, uint32_t page_size) {
  namespace recording = xenoscope::recording;
  std::vector<std::byte> whole(page.begin(), page.end());
  whole.resize(page_size);
  recording::SampleWriter writer = recording::SampleWriter::InMemory();
  writer.AppendTraceFormats(kGuest, xenoscope::AsText(formats));
  for (const uint32_t cpu : {0, 1, 0}) {
    writer.AppendTracePages({kGuest, xenoscope::VcpuId{cpu}}, {}, page_size, whole);
  }
  const recording::ClockAnswer answers[] = {
      {.before = 1000, .guest = xenoscope::Load<uint64_t>(whole, 0).value_or(0), .after = 30'000},
      {.before = 0, .guest = xenoscope::Load<uint64_t>(whole, 16).value_or(0), .after = ~0ULL}};
  writer.AppendClockAnswers(kGuest, answers);
  // What the guest's kernel says of its CPUs are the page's first words, and those behind.
  for (const size_t at : {size_t{0}, sizeof(recording::CpuTimesEntry)}) {
    const auto says = xenoscope::Load<recording::CpuTimesEntry>(whole, at);
    const recording::DrainTimes came{{}, {}, xenoscope::Tsc{~0ULL}};
    if (says) writer.AppendCpuTimes(kGuest, came, {&*says, 1});
  }
  const recording::FileHeader header;
  const auto head = std::as_bytes(std::span(&header, 1));
  std::vector<std::byte> file(head.begin(), head.end());
  const std::vector<std::byte> chunks = writer.Take();
  file.insert(file.end(), chunks.begin(), chunks.end());
  const auto trace = guests::KernelTrace::Open(file, kGuest);
  if (!trace.ok() || !*trace) return;
  CheckClock(**trace);
  CheckClaims(**trace);
  CheckBoot(**trace);
  CheckShutdown(**trace);
  std::vector<guests::ThreadStates> domains;
  domains.emplace_back(**trace, guests::EventClock::Fixed(0));
  const xenoscope::TscRange range{xenoscope::Tsc{600}, xenoscope::Tsc{20'000}};
  guests::PathFinder finder(range);
  domains[0].SetObserver(&finder);
  if (!guests::FollowThreads(domains, &Xen()).ok()) std::abort();
  CheckWaits(domains[0]);
  CheckPaths(finder, range, std::min<size_t>(domains[0].threads().size(), 8));
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const Bytes bytes = std::as_bytes(std::span(data, size));
  const size_t length = xenoscope::Load<uint16_t>(bytes, 0).value_or(0);
  const Bytes text = xenoscope::Slice(bytes, 2, length).value_or(Bytes());
  const auto formats = guests::ParseFormats(xenoscope::AsText(text));
  if (!formats.ok()) return 0;
  const auto decoder = guests::EventDecoder::Create(*formats);
  if (!decoder.ok()) return 0;
  const Bytes page = bytes.subspan(bytes.size() < 2 ? bytes.size() : 2 + text.size());
  guests::PageReader reader(page, formats->page);
  size_t taken = 0;
  guests::KernelEvent event;
  for (guests::RawEvent raw; reader.Next(raw);) {
    taken += raw.data.size() + sizeof(uint32_t);
    bool malformed = false;
    if (!decoder->Decode(raw, event, malformed)) continue;
    for (const std::string_view part : {event.name, event.path}) {
      if (part.size() > raw.data.size()) std::abort();
    }
  }
  if (taken + reader.damaged_bytes() > page.size()) std::abort();
  if (formats->page.PageSize() <= kMaxPage) FollowThreads(text, page, formats->page.PageSize());
  return 0;
}
