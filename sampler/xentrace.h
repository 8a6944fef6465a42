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
#include "sampler/copier.h"

namespace xenoscope::sampler {

// What to trace and how much to hold; as xentrace's options -e, -S and -s.
struct TraceRequest {
  std::string events = "all";
  uint32_t buffer_pages = 256;  // of 4 KiB for each pCPU; Xen keeps what was first asked for
  uint32_t poll_ms = 20;
};

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
  uint64_t bytes() const { return copier_ ? copier_->bytes() : 0; }

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
  std::optional<Copier> copier_;  // there when child_ is
};

}  // namespace xenoscope::sampler
