#include "cli/kernel_traces.h"

#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/ids.h"

namespace xenoscope::cli {

absl::StatusOr<KernelTraces> OpenKernelTraces(const recording::Recording& recording) {
  constexpr std::string_view kDom0Source = "ftrace";
  KernelTraces kernels;
  const std::vector<recording::SourceInfo>& sources = recording.info().sources;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (sources[i].name != kDom0Source) continue;
    XENOSCOPE_ASSIGN_OR_RETURN(recording::SampleStream stream, recording.OpenSamples(i));
    auto trace = guests::KernelTrace::Open(stream.file.bytes(), kDom0);
    if (!trace.ok()) return InContext(trace.status(), recording.path());
    if (*trace) kernels.traces.push_back(**std::move(trace));
    kernels.streams.push_back(std::move(stream));
  }
  return kernels;
}

std::vector<guests::ThreadStates> ThreadsOf(const KernelTraces& kernels) {
  std::vector<guests::ThreadStates> domains;
  domains.reserve(kernels.traces.size());
  for (const guests::KernelTrace& trace : kernels.traces) domains.emplace_back(trace, 0);
  return domains;
}

}  // namespace xenoscope::cli
