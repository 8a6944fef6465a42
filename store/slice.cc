#include "store/slice.h"

namespace xenoscope::store {

CodeKey Restrict(const CodeKey& key, uint8_t columns) {
  CodeKey out;
  if ((columns & kModeColumn) != 0) out.mode = key.mode;
  if ((columns & kImageColumn) != 0) out.image = key.image;
  if ((columns & kFunctionColumn) != 0) out.function = key.function;
  return out;
}

}  // namespace xenoscope::store
