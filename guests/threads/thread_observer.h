// Receives what threads do, interval by interval, for views that show it over time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/ids.h"
#include "base/tsc.h"
#include "guests/threads/culprits.h"
#include "guests/threads/interrupts.h"

namespace xenoscope::guests {

enum class ThreadState : uint8_t;

// A thread in one state.
struct ThreadInterval {
  DomainId domain;
  size_t thread = 0;            // index
  std::optional<uint32_t> cpu;  // where its kernel had put it, if that is what the state says
  TscRange range;
  ThreadState state{};
};

// Who sent an event to a domain that woke its vCPU.
struct EventSender {
  Culprit by;  // the thread of another domain that made the hypercall
  Tsc at;      // when Xen woke the vCPU
};

struct ThreadWakeup {
  DomainId domain;
  size_t waker = 0;  // index; it ran
  size_t woken = 0;
  Tsc at;
  // An interrupt stopped the waker, and woke the thread. Not all interrupts are recorded: that of a
  // processor's own timer is not.
  bool by_interrupt = false;
  // by_interrupt: the interrupt was of an event channel; nothing: its sender is not known.
  std::optional<EventSender> sender{};
  uint32_t cpu = 0;  // where the waker ran
};

// From here on another thread is on a vCPU.
struct ThreadSwitch {
  DomainId domain;
  uint32_t cpu = 0;
  Tsc at;
  std::optional<size_t> before{};  // index; nothing: not known
  std::optional<size_t> after{};   // index; nothing: not known
  // What becomes of `before`, as KernelEvent::state says it; nothing: not known.
  std::optional<uint64_t> state{};
};

struct NewThread {
  DomainId domain;
  size_t thread = 0;  // index; it waits for a vCPU
  size_t parent = 0;  // index
  uint32_t cpu = 0;   // where the parent ran
  Tsc at;
};

// A handler of an interrupt ran on a vCPU, with what interrupted it.
struct HandlerRun {
  DomainId domain;
  uint32_t cpu = 0;
  TscRange range;
  const InterruptKey& of;  // until the call returns
};

class ThreadObserver {
 public:
  virtual ~ThreadObserver() = default;
  // Receives the intervals of a thread in their order, each at its end. What a kernel claims may
  // contradict itself: they may overlap then. An interval on a vCPU may have several parts.
  virtual void OnInterval(const ThreadInterval& interval) = 0;
  virtual void OnWakeup(const ThreadWakeup& wakeup) = 0;
  // Receives each vCPU's switches in the order of time, the first one at the domain's first event.
  // Between two calls the vCPU has one thread, or it is not known which.
  virtual void OnSwitch(const ThreadSwitch& /*to*/) {}
  virtual void OnNewThread(const NewThread& /*added*/) {}
  // Receives the runs of handlers at their ends: one that was interrupted comes after the one that
  // interrupted it. Those of which the begin or the end is not known are left out.
  virtual void OnHandler(const HandlerRun& /*run*/) {}
};

}  // namespace xenoscope::guests
