#include "cli/boot_trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "cli/domain_names.h"
#include "symbolizer/text/initcalls.h"

namespace xenoscope::cli {
namespace {

using recording::SymbolFile;

absl::StatusOr<std::vector<Initcall>> ReadInitcallsOf(const recording::Recording& recording,
                                                      DomainId domain) {
  const SymbolFile* const file = recording.info().Symbols(SymbolFile::Kind::kKallsyms, domain);
  if (file == nullptr) return std::vector<Initcall>();
  XENOSCOPE_ASSIGN_OR_RETURN(const recording::PlainFile plain, recording.OpenSymbols(*file));
  XENOSCOPE_ASSIGN_OR_RETURN(const MappedFile kallsyms, MappedFile::Open(plain.path()));
  return symbolizer::ReadInitcalls(AsText(kallsyms.bytes()));
}

// What the options without functions need of each CPU's buffer, in MiB.
constexpr size_t kBufferMiB = 1;

// Returns the MiB of a CPU's buffer with which the boot and so many calls of functions are
// recorded: of each call funcgraph_entry has 24 bytes and funcgraph_exit 44.
constexpr size_t BufferMiB(size_t calls) {
  constexpr size_t kCallBytes = 24 + 44;
  constexpr size_t kPage = 4096;
  constexpr size_t kOfPage = 4080;  // bytes of events in it
  constexpr size_t kMiB = size_t{1} << 20;
  return kBufferMiB + (calls * kCallBytes * kPage / kOfPage + kMiB - 1) / kMiB;
}
// For more of them than this on one CPU, a user gives a larger trace_buf_size.
constexpr size_t kBootCalls = 200'000;

}  // namespace

std::string BootKernelOptions(const std::vector<std::string>& functions) {
  constexpr const char* kEvents = "trace_event=initcall:*,sched:sched_process_exec";
  constexpr const char* kClock = "trace_clock=x86-tsc";
  if (functions.empty()) {
    return fmt::format("{} {} trace_buf_size={}M", kEvents, kClock, kBufferMiB);
  }
  // The switches say which thread is in a function. ftrace_filter, not ftrace_graph_filter: with
  // that one the kernel would also stop in all functions that these call.
  return fmt::format(
      "{},sched:sched_switch {} trace_buf_size={}M ftrace=function_graph ftrace_filter={}", kEvents,
      kClock, BufferMiB(kBootCalls), fmt::join(functions, ","));
}

absl::StatusOr<BootTrace> BootTrace::Open(const recording::Recording& recording, DomainId domain,
                                          const trace::TraceFile& xen) {
  const std::string name = DomainLabel(domain, recording.info().NameOf(domain));
  const SymbolFile* const found = recording.info().Symbols(SymbolFile::Kind::kBootTrace, domain);
  if (found == nullptr) {
    return NotFoundError(
        "{} has no trace of {}'s boot: record with --boot {}, a kernel with the options of "
        "`xenoscope boot --kernel-options`, and `xenoscope agent` in the guest",
        recording.path(), name, name);
  }
  XENOSCOPE_ASSIGN_OR_RETURN(recording::PlainFile plain, recording.OpenSymbols(*found));
  XENOSCOPE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(plain.path()));
  BootTrace trace(std::move(plain), std::move(file));
  auto kernel = guests::KernelTrace::Open(trace.file_.bytes(), domain, kDom0);
  if (!kernel.ok()) return InContext(kernel.status(), name);
  if (!*kernel) return NotFoundError("{}: the trace of its boot is empty", name);
  if ((*kernel)->clock().answers == 0) {
    return InvalidError("{}: no answer about its clock is in the recording", name);
  }
  trace.kernel_ = std::make_unique<guests::KernelTrace>(**std::move(kernel));
  const guests::KernelTrace* const all = trace.kernel_.get();
  trace.clock = guests::FindKernelClocks({&all, 1}, &xen).front();
  XENOSCOPE_ASSIGN_OR_RETURN(trace.initcalls, ReadInitcallsOf(recording, domain));
  if (trace.initcalls.empty()) {
    fmt::print(stderr,
               "xenoscope: {}: its kernel's symbols name no initcalls, so these are addresses, and "
               "levels that no event names are part of others\n",
               name);
  }
  return trace;
}

Cycles WidthOf(const guests::KernelClock& clock) {
  Cycles width = 0;
  for (const guests::ClockEpoch& epoch : clock.epochs) width = std::max(width, epoch.Width());
  return width;
}

absl::StatusOr<DomainId> ChooseBooted(const recording::Recording& recording,
                                      const std::string& text) {
  const recording::RecordingInfo& info = recording.info();
  if (!text.empty()) return ChooseDomain(&info, text);
  std::vector<DomainId> booted;
  std::vector<std::string> names;
  for (const SymbolFile& file : info.symbols) {
    if (file.kind != SymbolFile::Kind::kBootTrace) continue;
    booted.push_back(file.domain);
    names.push_back(DomainLabel(file.domain, info.NameOf(file.domain)));
  }
  if (booted.empty()) {
    return NotFoundError("{} has no guest's boot: record with --boot GUEST", recording.path());
  }
  if (booted.size() > 1) {
    return InvalidError("{} has the boots of {}: choose one with --domain", recording.path(),
                        fmt::join(names, ", "));
  }
  return booted.front();
}

}  // namespace xenoscope::cli
