#include "base/crc.h"

#include <libdeflate.h>

namespace xenoscope {

uint32_t Crc32(Bytes bytes) { return libdeflate_crc32(0, bytes.data(), bytes.size()); }

}  // namespace xenoscope
