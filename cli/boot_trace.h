// The trace of a guest's boot in a recording, opened.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/initcalls.h"
#include "base/mapped_file.h"
#include "base/tsc.h"
#include "guests/clock/kernel_clock.h"
#include "guests/ftrace/kernel_trace.h"
#include "recording/plain_file.h"
#include "recording/recording.h"
#include "trace/trace_file.h"

namespace xenoscope::cli {

// Returns the options of a guest's kernel with which it records its boot (Linux's
// Documentation/admin-guide/kernel-parameters.txt), and the calls of functions with these patterns
// (sampler/ftrace/function_patterns.h).
[[nodiscard]] std::string BootKernelOptions(const std::vector<std::string>& functions = {});

// With what the trace points into.
struct BootTrace {
  // Opens the trace and finds its clock by Xen's. Errors: NotFound: the recording has none of the
  // domain; those of KernelTrace::Open.
  static absl::StatusOr<BootTrace> Open(const recording::Recording& recording, DomainId domain,
                                        const trace::TraceFile& xen);

  [[nodiscard]] const guests::KernelTrace& kernel() const { return *kernel_; }
  [[nodiscard]] size_t bytes() const { return file_.bytes().size(); }

  guests::KernelClock clock;
  std::vector<Initcall> initcalls;  // of its kernel, by address; none: its symbols are not known

 private:
  BootTrace(recording::PlainFile plain, MappedFile file)
      : plain_(std::move(plain)), file_(std::move(file)) {}

  recording::PlainFile plain_;
  MappedFile file_;  // of plain_
  std::unique_ptr<guests::KernelTrace> kernel_;
};

// Returns the cycles within which the offset of the clock is known.
[[nodiscard]] Cycles WidthOf(const guests::KernelClock& clock);

// Returns the domain that `text` names; if it is empty, the only one whose boot is in the
// recording. Errors (NotFound): there is none; (InvalidArgument): there are several.
absl::StatusOr<DomainId> ChooseBooted(const recording::Recording& recording,
                                      const std::string& text);

}  // namespace xenoscope::cli
