// An instance of Linux's tracing (Documentation/trace/ftrace.rst): a directory of tracefs whose
// buffers, clock and events are its own, so that nobody else's tracing is touched. Or the first
// one, which the kernel makes, and which may have recorded its boot.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/file.h"

namespace xenoscope::sampler {

// What the kernel counted of the events of one CPU (per_cpu/cpuN/stats).
struct TraceCounts {
  uint64_t read = 0;    // events that were read
  uint64_t lost = 0;    // events that were overwritten, or dropped, as the buffer was full
  uint64_t unread = 0;  // events that are in the buffer
};

class TraceInstance {
 public:
  static constexpr const char* kNoTracer = "nop";  // no functions are traced

  // Returns where tracefs is mounted; nothing where it is not.
  static std::optional<std::string> FindTracefs();

  // Makes the instance `name` in the tracefs at `root`, in the place of one that a killed process
  // left. Its clock is the TSC, and each CPU has a buffer of `buffer_kb` KiB. Events are off.
  // Errors: PermissionDenied; Unimplemented: this Linux has no instances, or no TSC clock.
  static absl::StatusOr<TraceInstance> Create(const std::string& root, const std::string& name,
                                              uint32_t buffer_kb);
  // Returns the instance that the kernel makes, at `root` itself, as it is. Errors (Unimplemented):
  // it has no pages.
  static absl::StatusOr<TraceInstance> First(const std::string& root);
  TraceInstance(TraceInstance&& other) noexcept;
  TraceInstance& operator=(TraceInstance&&) = delete;
  TraceInstance(const TraceInstance&) = delete;
  TraceInstance& operator=(const TraceInstance&) = delete;
  // Removes the instance with its buffers, if Create made it.
  ~TraceInstance();

  // Turns on the event "SYSTEM:EVENT", or all of "SYSTEM:*" or "SYSTEM"
  // (sampler/ftrace/event_list.h checks such names). NotFound: this kernel has none.
  [[nodiscard]] absl::Status Enable(const std::string& event);
  // Returns whether this kernel has the event, or any of a system.
  [[nodiscard]] bool Has(const std::string& event) const;
  [[nodiscard]] absl::Status TurnOff();
  [[nodiscard]] absl::Status TurnOn();

  // Adds the functions that fit the pattern to those that a tracer traces. Errors (NotFound): this
  // kernel has none; (Unimplemented): it traces no functions; those of writing. To be called before
  // SetTracer: with no functions a tracer traces all.
  [[nodiscard]] absl::Status AddFunctions(const std::string& pattern);
  // Traces functions: "function_graph", or "function". Errors: this kernel cannot, or not in an
  // instance.
  [[nodiscard]] absl::Status SetTracer(const std::string& tracer);
  // Returns how functions are traced: "function_graph", "function", or "nop".
  [[nodiscard]] std::string Tracer() const;
  // Ends the tracing of functions, and empties the buffers.
  [[nodiscard]] absl::Status RemoveTracer();

  // Returns the formats of pages, of the events that are on and of those of the tracer, as
  // guests/ftrace/formats.h reads them.
  [[nodiscard]] absl::StatusOr<std::string> Formats() const;
  // Returns the bytes of a page.
  [[nodiscard]] size_t page_size() const { return page_size_; }

  // Returns the CPUs that have a buffer.
  [[nodiscard]] const std::vector<uint32_t>& cpus() const { return cpus_; }
  // Opens the CPU's pages: each read(2) of page_size() bytes gives one, and never waits.
  [[nodiscard]] absl::StatusOr<File> OpenPages(uint32_t cpu) const;
  [[nodiscard]] TraceCounts Counts(uint32_t cpu) const;

 private:
  TraceInstance(std::string root, std::string path)
      : root_(std::move(root)), path_(std::move(path)) {}
  [[nodiscard]] static std::string EnableFile(const std::string& event);
  [[nodiscard]] absl::Status Write(const std::string& file, std::string_view text) const;
  absl::Status FindPages();

  std::string root_;
  std::string path_;  // root_: the first instance; empty: moved from
  std::vector<uint32_t> cpus_;
  size_t page_size_ = 0;
};

}  // namespace xenoscope::sampler
