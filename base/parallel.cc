#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <utility>

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

void MoveToOtherProcessor(pthread_t thread) {
  cpu_set_t allowed;
  const int here = sched_getcpu();
  if (here < 0 || sched_getaffinity(0, sizeof allowed, &allowed) != 0) return;
  cpu_set_t others = allowed;
  CPU_CLR(static_cast<size_t>(here), &others);
  if (CPU_COUNT(&others) == 0) return;
  // The first call moves it; the second lets Linux decide from then on. Of a thread that has ended
  // they move the caller, and let Linux decide where it goes.
  pthread_setaffinity_np(thread, sizeof others, &others);
  pthread_setaffinity_np(thread, sizeof allowed, &allowed);
}

}  // namespace

unsigned ThreadLimit() { return Limit(); }

std::jthread StartThread(std::function<void()> work) {
  std::jthread thread(std::move(work));
  MoveToOtherProcessor(thread.native_handle());
  return thread;
}

void SetThreadLimit(unsigned threads) { Limit() = std::max(threads, 1U); }

}  // namespace xenoscope
