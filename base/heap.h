// How the process takes memory from the kernel, and gives it back.
#pragma once

namespace xenoscope {

// Keeps up to some 32 MiB of freed memory for later use, in place of giving it back: a PV dom0 asks
// Xen for each page that it gives to a process. For processes that need as much again and again.
void KeepFreedMemory();

// Does so, and takes new memory in large steps: glibc calls the kernel for every few pages of a
// thread other than the first, and each call stops the page faults of all threads. What is not used
// has no pages. For commands that compute and end.
void TakeMemoryInLargeSteps();

}  // namespace xenoscope
