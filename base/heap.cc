#include "base/heap.h"

#include <malloc.h>

namespace xenoscope {
namespace {

constexpr int kStep = 32 << 20;  // the most that M_MMAP_THRESHOLD can be

}  // namespace

void KeepFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, kStep);
  mallopt(M_TRIM_THRESHOLD, kStep);
}

void TakeMemoryInLargeSteps() {
  KeepFreedMemory();
  mallopt(M_TOP_PAD, kStep);
}

}  // namespace xenoscope
