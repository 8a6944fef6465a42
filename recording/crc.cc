#include "recording/crc.h"

#include <zlib.h>

#include <algorithm>
#include <cstddef>

namespace xenoscope::recording {

uint32_t Crc32(Bytes bytes) {
  constexpr size_t kStep = size_t{1} << 30;  // zlib takes 32-bit lengths
  uLong crc = crc32(0, nullptr, 0);
  while (!bytes.empty()) {
    const Bytes part = bytes.first(std::min(bytes.size(), kStep));
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): zlib's idea of a byte
    crc = crc32(crc, reinterpret_cast<const Bytef*>(part.data()), static_cast<uInt>(part.size()));
    bytes = bytes.subspan(part.size());
  }
  return static_cast<uint32_t>(crc);
}

}  // namespace xenoscope::recording
