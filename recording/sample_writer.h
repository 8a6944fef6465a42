// Writes one samples/NAME.samples. Append only: whatever ends the process, a reader gets every
// drain that was flushed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "recording/sample_format.h"

namespace xenoscope::recording {

// When a drain looked, and when the one before it did.
struct DrainTimes {
  Tsc previous_before;
  Tsc before;
  Tsc after;
};

class SampleWriter {
 public:
  // Makes the file, which must not exist, and writes its header.
  static absl::StatusOr<SampleWriter> Create(const std::string& path);

  SampleWriter(SampleWriter&& other) noexcept;
  SampleWriter& operator=(SampleWriter&& other) noexcept;
  SampleWriter(const SampleWriter&) = delete;
  SampleWriter& operator=(const SampleWriter&) = delete;
  ~SampleWriter();

  // Adds the entries of one vCPU's buffer, in the order in which they left it. In memory until
  // Flush.
  void Append(VcpuRef vcpu, const DrainTimes& times, std::span<const Entry> entries);

  // Adds the entry of a vCPU that was stopped within `when` to be read. In memory until Flush.
  void AppendStopped(VcpuRef vcpu, TscRange when, const Entry& entry);

  // Hands all that was appended to the kernel. When the disk is full (ResourceExhausted) or the
  // write fails, what had gone out in part is cut off again, so that the file ends with a whole
  // chunk.
  absl::Status Flush();

  uint64_t bytes_written() const { return written_; }

 private:
  SampleWriter(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  void AppendChunk(ChunkKind kind, VcpuRef vcpu, const DrainTimes& times,
                   std::span<const Entry> entries);

  std::string path_;
  int fd_ = -1;
  uint64_t written_ = 0;
  std::vector<std::byte> pending_;
};

}  // namespace xenoscope::recording
