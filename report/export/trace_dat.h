// Writes trace.dat, the file of trace-cmd, KernelShark and Trace Compass, in its version 6
// (trace-cmd.dat.v6(5)). Its events have the form of Linux's: sub-buffers of 4096 bytes, whose
// times are nanoseconds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "recording/temporary_file.h"

namespace xenoscope::report {

// What tracefs has in events/SYSTEM/EVENT/format.
struct TraceDatFormat {
  std::string_view system;
  std::string_view text;
};

// A guest of which another file has the events, for readers that open both.
struct TraceDatGuest {
  std::string name;
  uint64_t id = 0;                // of that file
  std::vector<uint32_t> threads;  // by vCPU: the thread that it is in this file
};

struct TraceDatHead {
  uint64_t id = 0;  // of the file
  std::vector<TraceDatFormat> formats;
  std::string_view kallsyms;  // lines as in /proc/kallsyms; readers name kernel addresses by them
  std::map<uint32_t, std::string> threads;  // names by tid
  std::vector<TraceDatGuest> guests;
};

class TraceDat {
 public:
  // Keeps events in a temporary file until all are known. The file has these CPUs, and those that
  // have events. Errors: those of making it.
  static absl::StatusOr<TraceDat> Create(size_t cpus = 0);

  // Adds an event of the CPU, with the number of its format first. `ns` does not go back on a CPU:
  // an earlier time is that of the event before. An event that no page holds is left out and
  // counted. Error (ResourceExhausted): the disk is full. O(1) amortised.
  absl::Status Add(size_t cpu, uint64_t ns, Bytes event);
  // Notes that events of the CPU were lost before the next one.
  absl::Status Lose(size_t cpu);
  // Returns the number of events that no page holds.
  [[nodiscard]] uint64_t left_out() const { return left_out_; }

  // Writes the file. Errors: those of writing.
  absl::Status Write(const std::string& path, const TraceDatHead& head);

  static constexpr size_t kPageSize = 4096;

 private:
  struct Cpu {
    std::vector<std::byte> page;    // the one in the making; empty: none
    uint64_t last_ns = 0;           // of its last event
    bool lost = false;              // events before the next page
    std::vector<uint32_t> numbers;  // of its pages in the temporary file
  };

  TraceDat(recording::TemporaryFile file, size_t cpus) : file_(std::move(file)), cpus_(cpus) {}
  Cpu& At(size_t cpu);
  absl::Status EndPage(Cpu& cpu);

  recording::TemporaryFile file_;
  std::vector<Cpu> cpus_;
  uint32_t pages_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace xenoscope::report
