// A xentrace file, or the bytes of one, whose windows are known: it can be streamed any number of
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
  [[nodiscard]] static absl::StatusOr<TraceFile> Open(const std::string& path,
                                                      std::string name = {});
  // `bytes` outlive the result; `name` stands for the path in messages.
  [[nodiscard]] static absl::StatusOr<TraceFile> FromBytes(Bytes bytes, std::string name);

  // Adds `cycles` to all TSCs of a pCPU whose clock is not the host's. Not to be called while there
  // is a stream.
  // Errors: NotFound when the trace has no such pCPU.
  absl::Status ShiftClock(PcpuId pcpu, int64_t cycles);

  [[nodiscard]] Bytes bytes() const { return bytes_; }
  const std::string& name() const { return name_; }
  const WindowIndex& index() const { return index_; }
  // Streams the whole trace, or the part from somewhat before `from` on (OrderedStream). The file
  // outlives the stream.
  [[nodiscard]] OrderedStream Stream(std::optional<Tsc> from = std::nullopt) const {
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
