#include "symbolizer/elf/small_debug_file.h"

#include <string>
#include <utility>

#include "base/error.h"

namespace xenoscope::symbolizer {
namespace {

constexpr size_t kLargest = size_t{64} << 20;

}  // namespace

absl::StatusOr<FileContent> SmallDebugFileOf(const ElfFile& elf) {
  const Bytes compressed = elf.Section(".gnu_debugdata");
  if (compressed.empty()) return NotFoundError("it has no .gnu_debugdata");
  absl::StatusOr<std::string> content = DecompressXz(compressed, kLargest);
  if (!content.ok()) return InvalidError("its .gnu_debugdata is damaged or too large");
  return FileContent::FromString(*std::move(content));
}

}  // namespace xenoscope::symbolizer
