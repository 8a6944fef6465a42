// The host's xentrace, run as a child of the recorder; what it writes goes into a file, unchanged.
//
//   xentrace --(pipe)--> memory here --(write)--> trace.xentrace
//
// There is a pipe in between because xentrace writes straight from Xen's pages, which some file
// systems (9p) cannot take; and because the recorder then notices a full disk, and counts the
// bytes.
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
#include "trace/event_mask.h"

namespace xenoscope::sampler {

// What to trace and how much to buffer: xentrace's options -e, -S and -s.
struct TraceRequest {
  // The events as they were asked for (trace::ParseEventMask), and their mask, which is what Xen
  // gets.
  std::string events{trace::kDefaultMaskName};
  trace::EventMask event_mask = trace::kDefaultMask;
  // The pages of 4 KiB for each pCPU, which Xen takes from its memory until it reboots; Xen keeps
  // the first value. Default: DefaultBufferPages.
  std::optional<uint32_t> buffer_pages;
  uint32_t poll_ms = 20;
};

// Returns 4 MiB for each pCPU; for many pCPUs 64 MiB in all, but never less than 1 MiB for each
// (docs/sources.md).
uint32_t DefaultBufferPages(uint32_t pcpus);

// Returns OK if no process takes Xen's trace; FailedPrecondition, with the process, if one does:
// Xen serves only one.
absl::Status CheckTraceIsFree();

// Returns the path of the program: in PATH, else in /usr/lib/xen-*/bin. NotFound: what to install.
absl::StatusOr<std::string> FindXentrace();

// A running xentrace.
class Xentrace {
 public:
  // Starts it, found in PATH or in /usr/lib/xen-*/bin, and waits until it traces. It writes to
  // `file`, which errors call `path`. Errors, each with what to do: NotFound: no xentrace;
  // FailedPrecondition: it runs already; otherwise its own last message.
  static absl::StatusOr<std::unique_ptr<Xentrace>> Start(const TraceRequest& request, File file,
                                                         const std::string& path);

  Xentrace(const Xentrace&) = delete;
  Xentrace& operator=(const Xentrace&) = delete;
  // Stops it, unless Stop was called.
  ~Xentrace();

  // Returns OK while all is well; otherwise why the trace has ended.
  absl::Status Check();
  // Ends it, and returns when all that Xen's buffers held is in the file.
  absl::Status Stop();

  // Returns the processor time that it has taken.
  [[nodiscard]] std::chrono::nanoseconds CpuTime() const;
  [[nodiscard]] uint64_t bytes() const { return spooler_ ? spooler_->bytes() : 0; }
  [[nodiscard]] const TraceLosses& losses() const { return losses_; }

 private:
  Xentrace(File pipe, File file, File diagnostics);

  absl::Status WaitUntilTracing();
  // Waits until the pipe is empty and xentrace waits for more records.
  void WaitUntilIdle();
  // Returns why it ended, from its exit status and its standard error.
  absl::Status Died(Exit exit) const;

  File pipe_;
  File file_;
  File diagnostics_;  // its standard error, in memory
  std::optional<ChildProcess> child_;
  TraceLosses losses_;
  std::optional<PipeSpooler> spooler_;  // set when child_ is
};

}  // namespace xenoscope::sampler
