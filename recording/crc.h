// The checksum by which a chunk of samples shows that it is whole.
#pragma once

#include <cstdint>

#include "base/bytes.h"

namespace xenoscope::recording {

// CRC-32 of ISO 3309, the one of zlib and PNG. Runs over any length.
uint32_t Crc32(Bytes bytes);

}  // namespace xenoscope::recording
