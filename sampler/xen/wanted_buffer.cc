#include "sampler/xen/wanted_buffer.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>

#include "absl/strings/numbers.h"
#include "sampler/small_file.h"

namespace xenoscope::sampler {

std::optional<uint32_t> WantedBufferPages(uint32_t pages, uint32_t pcpus) {
  constexpr uint32_t kTotalPages = 65536;
  const uint32_t most = std::min(kMaxBufferPages, kTotalPages / std::max(pcpus, 1U));
  const uint32_t wanted = std::min(pages, most / 2) * 2;
  return wanted > pages ? std::optional(wanted) : std::nullopt;
}

std::optional<uint32_t> ReadWantedBuffer(const std::string& file) {
  uint32_t pages = 0;
  const bool is_number = absl::SimpleAtoi(ReadSmallFile(file).value_or(""), &pages);
  if (!is_number || pages == 0 || pages > kMaxBufferPages) return std::nullopt;
  return pages;
}

absl::Status WriteWantedBuffer(const std::string& file, uint32_t pages) {
  constexpr mode_t kDirectoryMode = 0755;
  mkdir(std::filesystem::path(file).parent_path().c_str(), kDirectoryMode);
  constexpr mode_t kFileMode = 0644;
  return WriteSmallFile(file, fmt::format("{}\n", pages), kFileMode);
}

}  // namespace xenoscope::sampler
