// Finds where each pCPU's records lie in a xentrace file.
//
// A file is a sequence of windows: a header {u32 0x2001f003, u32 pcpu, u32 bytes} that xentrace
// writes, then that many bytes of one pCPU's ring (tools/xentrace/xentrace.c, write_buffer, 4.17).
// The windows of one pCPU, in the order of the file, are that pCPU's trace.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "trace/events.h"
#include "trace/record.h"

namespace xenoscope::trace {

// The bytes [begin, end) of the file, all of one pCPU.
struct Window {
  uint64_t begin = 0;
  uint64_t end = 0;
};

struct PcpuWindows {
  PcpuId pcpu;
  std::vector<Window> windows;  // in the order of the file
  int64_t tsc_offset = 0;       // added to the pCPU's TSCs, where its clock is not the host's
};

struct WindowIndex {
  std::vector<PcpuWindows> pcpus;  // in the order of pCPUs, each with at least one byte
  std::vector<Damage> damages;     // bytes outside any window, and the file's torn end
  uint64_t header_bytes = 0;       // the size of all window headers together
};

// TRC_TRACE_CPU_CHANGE with two extra words and no TSC: 0x2001f003.
inline constexpr uint32_t kWindowHeaderWord =
    FirstWord::Pack(IdOf(Event::kTraceCpuChange), 2, false).value;
inline constexpr uint64_t kWindowHeaderBytes = 12;
// Xen is built for at most 16383 pCPUs (NR_CPUS, xen/arch/Kconfig, 4.22); more is damage.
inline constexpr uint32_t kMaxPcpus = 16384;

// Finds all windows. O(windows); 16 bytes of memory for each. In a file that is cut or damaged, all
// windows are found that are left: from a place without a header, the search goes on word by word
// to the next header. Errors: the file has no window.
[[nodiscard]] absl::StatusOr<WindowIndex> IndexWindows(Bytes file);

}  // namespace xenoscope::trace
