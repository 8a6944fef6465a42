// The checksum by which chunks of samples, agents' messages, kept tables and debug files show that
// they are whole.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace xenoscope {

// Returns the CRC-32 of ISO 3309, which zlib and PNG use, of what `before` is the CRC-32 of and
// then `bytes`. O(bytes).
[[nodiscard]] uint32_t Crc32(Bytes bytes, uint32_t before = 0);

}  // namespace xenoscope
