#include "base/crc.h"

#include <libdeflate.h>

namespace xenoscope {

uint32_t Crc32(Bytes bytes, uint32_t before) {
  return libdeflate_crc32(before, bytes.data(), bytes.size());
}

}  // namespace xenoscope
