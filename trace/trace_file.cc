#include "trace/trace_file.h"

#include <utility>

#include "base/error.h"

namespace xenoscope::trace {

absl::StatusOr<TraceFile> TraceFile::Open(const std::string& path, std::string name) {
  XENOSCOPE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path, std::move(name)));
  file.Populate();
  XENOSCOPE_ASSIGN_OR_RETURN(TraceFile trace, FromBytes(file.bytes(), file.name()));
  trace.file_ = std::move(file);
  return trace;
}

absl::StatusOr<TraceFile> TraceFile::FromBytes(Bytes bytes, std::string name) {
  absl::StatusOr<WindowIndex> index = IndexWindows(bytes);
  if (!index.ok()) return InContext(index.status(), name);
  TraceFile trace;
  trace.bytes_ = bytes;
  trace.name_ = std::move(name);
  trace.index_ = *std::move(index);
  return trace;
}

absl::Status TraceFile::ShiftClock(PcpuId pcpu, int64_t cycles) {
  for (PcpuWindows& windows : index_.pcpus) {
    if (windows.pcpu != pcpu) continue;
    windows.tsc_offset = cycles;
    return absl::OkStatus();
  }
  return NotFoundError("{}: no pCPU {} in this trace, which has {} of them", name_, pcpu.value,
                       index_.pcpus.size());
}

}  // namespace xenoscope::trace
