#include "sampler/agent/dont_fork.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/error.h"

namespace xenoscope::sampler {

absl::Status DontFork(Bytes memory) {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): for its place in a page
  const size_t before = reinterpret_cast<uintptr_t>(memory.data()) % page;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): its content stays
  std::byte* const first = const_cast<std::byte*>(memory.data()) - before;
  if (madvise(first, before + memory.size(), MADV_DONTFORK) == 0) return absl::OkStatus();
  return ErrnoError(errno, "cannot keep memory from other processes");
}

}  // namespace xenoscope::sampler
