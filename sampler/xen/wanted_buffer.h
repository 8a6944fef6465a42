// The size of Xen's trace buffers that a recording with losses would have needed. Xen makes its
// buffers once and never changes them, so the size waits in a file for the first trace after a
// reboot.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace xenoscope::sampler {

// The file, in a directory that only root writes to and that survives a reboot.
inline constexpr const char* kWantedBufferFile = "/var/lib/xenoscope/trace_buffer_pages";
// The most pages that --trace-buffer takes.
inline constexpr uint32_t kMaxBufferPages = 16384;

// Returns the size to ask for after records were lost in buffers of `pages` for each pCPU: twice as
// much, but at most 256 MiB for all pCPUs, since it comes out of Xen's own memory; nothing if that
// is not more.
[[nodiscard]] std::optional<uint32_t> WantedBufferPages(uint32_t pages, uint32_t pcpus);

// Returns the size in the file; nothing if there is none, or no sensible one.
[[nodiscard]] std::optional<uint32_t> ReadWantedBuffer(const std::string& file);
// Writes it, and makes the file's directory where it is missing.
absl::Status WriteWantedBuffer(const std::string& file, uint32_t pages);

}  // namespace xenoscope::sampler
