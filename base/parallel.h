// Loops whose iterations are divided over threads.
#pragma once

#include <algorithm>
#include <atomic>
#include <concepts>
#include <cstddef>
#include <functional>
#include <thread>
#include <vector>

namespace xenoscope {

// Returns the number of threads that work is divided over: SetThreadLimit()'s, or the number of
// CPUs on which this process may run (sched_setaffinity(2)).
[[nodiscard]] unsigned ThreadLimit();
// To be called before there are threads.
void SetThreadLimit(unsigned threads);

// Starts a thread on another CPU than this one, if this process may use one. Linux may begin a
// thread on its creator's although another CPU is idle, and in virtual machines it stays there for
// up to 30 ms: longer than a short trace takes.
[[nodiscard]] std::jthread StartThread(std::function<void()> work);

// Calls work(i) once for every i in [0, count), in no certain order, from several threads. Each
// thread is given at least `items_per_thread`; few items are done by the calling thread alone.
template <std::invocable<size_t> Work>
void ForEachInParallel(size_t count, size_t items_per_thread, const Work& work) {
  std::atomic<size_t> next{0};
  const auto run = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  const size_t wanted =
      std::min<size_t>(ThreadLimit(), count / std::max<size_t>(1, items_per_thread));
  std::vector<std::jthread> others;
  for (size_t i = 1; i < wanted; ++i) others.push_back(StartThread(run));
  run();
}

}  // namespace xenoscope
