// A xentrace file, or the bytes of one: its windows found, ready to be streamed any number of
// times.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/mapped_file.h"
#include "trace/ordered_stream.h"
#include "trace/windows.h"

namespace xenoscope::trace {

class TraceFile {
 public:
  // `name` stands for the path in messages; empty: the path itself. Errors: those of
  // MappedFile::Open and of IndexWindows, with the name.
  static absl::StatusOr<TraceFile> Open(const std::string& path, std::string name = {});
  // `bytes` must outlive the result; `name` stands for the path in messages.
  static absl::StatusOr<TraceFile> FromBytes(Bytes bytes, std::string name);

  // Adds `cycles` to all TSCs of a pCPU whose clock is not the host's. Not while it is streamed.
  // Errors: NotFound when the trace has no such pCPU.
  absl::Status ShiftClock(PcpuId pcpu, int64_t cycles);

  Bytes bytes() const { return bytes_; }
  const std::string& name() const { return name_; }
  const WindowIndex& index() const { return index_; }
  // The whole trace, or what comes from somewhat before `from` on (OrderedStream). The stream must
  // not outlive the file.
  OrderedStream Stream(std::optional<Tsc> from = std::nullopt) const {
    return {bytes_, index_, from};
  }

 private:
  TraceFile() = default;

  MappedFile file_;
  Bytes bytes_;
  std::string name_;
  WindowIndex index_;
};

}  // namespace xenoscope::trace
