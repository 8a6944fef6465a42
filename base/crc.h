// The checksum by which chunks of samples, agents' messages, kept tables and debug files show that
// they are whole.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace xenoscope {

// CRC-32 of ISO 3309, the one of zlib and PNG. Runs over any length.
uint32_t Crc32(Bytes bytes);

}  // namespace xenoscope
