// The host's own xentrace, run beside the sampler; what it writes goes into a file, unchanged.
//
//   xentrace --(pipe)--> memory here --(write)--> trace.xentrace
//
// Through a pipe, because xentrace writes straight from Xen's pages, which some file systems (9p)
// cannot take; and because so we see ourselves when the disk is full, and how many bytes there are.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"
#include "sampler/child_process.h"
#include "sampler/pipe_spooler.h"
#include "sampler/xen/trace_losses.h"

namespace xenoscope::sampler {

// What to trace and how much to hold; as xentrace's options -e, -S and -s.
struct TraceRequest {
  std::string events = "all";
  // Of 4 KiB for each pCPU, which Xen takes from its memory until it reboots; Xen keeps what was
  // first asked for. Default: DefaultBufferPages.
  std::optional<uint32_t> buffer_pages;
  uint32_t poll_ms = 20;
};

// 4 MiB a pCPU, of many pCPUs 64 MiB in all, but never less than 1 MiB a pCPU (docs/sources.md).
uint32_t DefaultBufferPages(uint32_t pcpus);

// OK where Xen's trace is nobody's; FailedPrecondition, with who has it, where somebody takes it
// already: Xen gives it to one.
absl::Status CheckTraceIsFree();

// Where the program is: in PATH, else in /usr/lib/xen-*/bin. NotFound: what to install.
absl::StatusOr<std::string> FindXentrace();

class Xentrace {
 public:
  // Starts it, found in PATH or in /usr/lib/xen-*/bin, and waits until it traces.
  // Errors, each with what to do: NotFound: no xentrace; FailedPrecondition: it runs already;
  // otherwise its own last words.
  // What it writes goes into `file`, which is called `path` in errors.
  static absl::StatusOr<std::unique_ptr<Xentrace>> Start(const TraceRequest& request, File file,
                                                         const std::string& path);

  Xentrace(const Xentrace&) = delete;
  Xentrace& operator=(const Xentrace&) = delete;
  // Stops, when nobody did.
  ~Xentrace();

  // OK while all is well; otherwise why the trace has ended.
  absl::Status Check();
  // Ends it, and returns when all that Xen's buffers held is in the file.
  absl::Status Stop();

  // The processor time that it has taken.
  std::chrono::nanoseconds CpuTime() const;
  uint64_t bytes() const { return spooler_ ? spooler_->bytes() : 0; }
  const TraceLosses& losses() const { return losses_; }

 private:
  Xentrace(File pipe, File file, File diagnostics);

  absl::Status WaitUntilTracing();
  // Until nothing waits in the pipe, and it waits for more to come.
  void WaitUntilIdle();
  // Why it ended, from its exit status and what it wrote to its standard error.
  absl::Status Died(Exit exit) const;

  File pipe_;
  File file_;
  File diagnostics_;  // in memory
  std::optional<ChildProcess> child_;
  TraceLosses losses_;
  std::optional<PipeSpooler> spooler_;  // there when child_ is
};

}  // namespace xenoscope::sampler
