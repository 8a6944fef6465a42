#include "cli/kernel_traces.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/ids.h"
#include "guests/threads/learn_threads.h"
#include "profile/pipeline_options.h"

namespace xenoscope::cli {
namespace {

// Returns the domain whose kernel's trace the source may have.
std::optional<DomainId> DomainOf(const recording::RecordingInfo& info,
                                 const recording::SourceInfo& source) {
  if (source.name == "ftrace") return kDom0;
  for (const recording::DomainInfo& domain : info.domains) {
    if (source.name == fmt::format("agent-{}", domain.id.value)) return domain.id;
  }
  return std::nullopt;
}

}  // namespace

bool NeedsThreads(const std::vector<correlate::Dimension>& by) {
  return profile::HasDimension(by, correlate::Dimension::kThread) ||
         profile::HasDimension(by, correlate::Dimension::kContainer);
}

absl::StatusOr<KernelTraces> OpenKernelTraces(const recording::Recording& recording,
                                              const trace::TraceFile* xen, LiveKernels* live) {
  KernelTraces kernels;
  const recording::RecordingInfo& info = recording.info();
  if (live != nullptr) {
    live->left_out.clear();
    live->begins.resize(info.sources.size());
    live->pages_begin.resize(info.sources.size());
  }
  for (size_t i = 0; i < info.sources.size(); ++i) {
    const std::optional<DomainId> domain = DomainOf(info, info.sources[i]);
    if (!domain) continue;
    XENOSCOPE_ASSIGN_OR_RETURN(recording::SampleStream stream, recording.OpenSamples(i));
    const Bytes file = stream.file.bytes();
    auto trace = live == nullptr ? guests::KernelTrace::Open(file, *domain)
                                 : guests::KernelTrace::OpenLive(
                                       file, *domain, live->pages_begin[i], live->begins[i]);
    if (!trace.ok() && *domain == kDom0) return InContext(trace.status(), recording.path());
    if (trace.ok() && !*trace) continue;
    if (trace.ok() && *domain != kDom0 && (*trace)->clock().answers == 0) {
      trace = InvalidError("no answer about its clock is in the recording");
    }
    if (!trace.ok()) {
      const std::string why =
          fmt::format("{}: its kernel's events are left out: {}",
                      DomainLabel(*domain, info.NameOf(*domain)), Message(trace.status()));
      if (live != nullptr) {
        live->left_out.push_back(why);
      } else {
        fmt::print(stderr, "xenoscope: {}\n", why);
      }
      continue;
    }
    kernels.sources.push_back(i);
    kernels.traces.push_back(**std::move(trace));
    kernels.streams.push_back(std::move(stream));
  }
  std::vector<const guests::KernelTrace*> all;
  for (const guests::KernelTrace& trace : kernels.traces) all.push_back(&trace);
  kernels.clocks = guests::FindKernelClocks(all, xen);
  return kernels;
}

void LiveKernels::Learn(const KernelTraces& kernels,
                        std::span<const guests::ThreadStates> domains) {
  for (size_t i = 0; i < domains.size(); ++i)
    guests::LearnThreads(domains[i], begins[kernels.sources[i]]);
}

void WarnOfDamage(std::string_view name, const guests::KernelTraceFaults& faults) {
  if (faults.damaged_bytes + faults.malformed + faults.disordered == 0) return;
  fmt::print(stderr,
             "xenoscope: {}: of its kernel's trace {} bytes are damaged, {} events are too short, "
             "and {} go back in time\n",
             name, faults.damaged_bytes, faults.malformed, faults.disordered);
}

void WarnOfClock(std::string_view name, const guests::KernelClock& clock) {
  if (clock.epochs.size() > 1) {
    fmt::print(stderr,
               "xenoscope: {}: its clock was set {} time{}: each of its kernel's events has the "
               "time by the clock that it had then\n",
               name, clock.epochs.size() - 1, clock.epochs.size() > 2 ? "s" : "");
  }
  if (clock.bad_answers + clock.outside == 0) return;
  fmt::print(stderr,
             "xenoscope: {}: {} of {} kernel events, and {} of {} answers about its clock, "
             "contradict the others: their times may be wrong\n",
             name, clock.outside, clock.outside + clock.inside, clock.bad_answers,
             clock.bad_answers + clock.answers);
}

std::vector<guests::ThreadStates> ThreadsOf(const KernelTraces& kernels) {
  std::vector<guests::ThreadStates> domains;
  domains.reserve(kernels.traces.size());
  for (size_t i = 0; i < kernels.traces.size(); ++i) {
    domains.emplace_back(kernels.traces[i], kernels.clocks[i].Events());
  }
  return domains;
}

}  // namespace xenoscope::cli
