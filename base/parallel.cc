#include "base/parallel.h"

#include <sched.h>

namespace xenoscope {
namespace {

unsigned UsableProcessors() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  // It fails where the kernel has more CPUs than the set.
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) {
    return static_cast<unsigned>(std::max(CPU_COUNT(&allowed), 1));
  }
  return std::max(std::thread::hardware_concurrency(), 1U);
}

unsigned& Limit() {
  static unsigned limit = UsableProcessors();
  return limit;
}

}  // namespace

unsigned ThreadLimit() { return Limit(); }

void SetThreadLimit(unsigned threads) { Limit() = std::max(threads, 1U); }

}  // namespace xenoscope
