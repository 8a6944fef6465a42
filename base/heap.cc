#include "base/heap.h"

#include <malloc.h>

namespace xenoscope {
namespace {

constexpr int kLarge = 32 << 20;  // bytes, the most that M_MMAP_THRESHOLD can be

}  // namespace

void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, kLarge);
  mallopt(M_TRIM_THRESHOLD, kLarge);
}

void TakeMemoryInLargeSteps() {
  KeepFreedMemory();
  mallopt(M_TOP_PAD, kLarge);
}

}  // namespace xenoscope
