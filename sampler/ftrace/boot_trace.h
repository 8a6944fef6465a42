// What this Linux recorded of its own boot, if its command line asked for that
// (Documentation/trace/boottime-trace.rst): the buffers of its first tracing instance.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace xenoscope::sampler {

// The most bytes of pages that are taken, the earliest of the CPUs in their order.
inline constexpr size_t kMaxBootTraceBytes = size_t{32} << 20;
// Whether a trace with pages of this size was cut there: what came later is not in it.
[[nodiscard]] constexpr bool IsCutBootTrace(size_t bytes, size_t page_size) {
  return bytes + page_size > kMaxBootTraceBytes;
}

// Whether the kernel's command line says that the boot is recorded, by the TSC.
[[nodiscard]] bool RecordsBoot(std::string_view command_line);

// Takes the events of the boot out of the first instance, in the tracefs at `root`, and turns its
// tracing off, that of functions, too: the boot is over, and what it records costs time from here
// on. Returns a file as samples/*.samples (recording/sample_format.h), with formats and pages of
// domain 0. Errors (FailedPrecondition): the command line does not ask for it, or the clock is
// another one by now; the buffers are empty, since another program has read them, for example.
absl::StatusOr<std::vector<std::byte>> TakeBootTrace(const std::string& root,
                                                     std::string_view command_line);

}  // namespace xenoscope::sampler
