// What records of a perf ring say (linux/perf_event.h, enum perf_event_type), as the perf source
// has asked for them: kSampleType, with sample_id_all.
#pragma once

#include <linux/perf_event.h>

#include <cstdint>
#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "base/mode.h"

namespace xenoscope::sampler {

inline constexpr uint64_t kPerfSampleType = PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP |
                                            PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU |
                                            PERF_SAMPLE_PERIOD;

// Of all that a record says, `time` is the perf clock's, in nanoseconds.
struct PerfSample {
  uint64_t id = 0;  // of the event that took it
  Mode mode = Mode::kKernel;
  bool of_guest = false;  // not of this Linux, of which it is the host or dom0
  Address address = 0;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t time = 0;
  uint32_t cpu = 0;
  uint64_t period = 0;  // counts since the one before
  Bytes chain;          // with PERF_SAMPLE_CALLCHAIN: 8 bytes each, with marks of contexts
};

struct PerfName {
  uint32_t pid = 0;
  uint32_t tid = 0;
  bool by_exec = false;
  std::string_view name;
  uint64_t time = 0;
};

struct PerfMap {
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint64_t address = 0;
  uint64_t length = 0;
  uint64_t offset = 0;
  Bytes build_id;  // empty when the kernel gives none
  std::string_view path;
  uint64_t time = 0;
};

struct PerfTask {  // a thread began or ended
  bool exit = false;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t parent = 0;
  uint64_t time = 0;
};

struct PerfLost {
  uint64_t samples = 0;
};

struct PerfThrottle {
  bool on = false;
};

struct PerfOther {};    // of a type that nobody asked for, or of no interest
struct PerfInvalid {};  // shorter than what it must say

using PerfRecord = std::variant<PerfSample, PerfName, PerfMap, PerfTask, PerfLost, PerfThrottle,
                                PerfOther, PerfInvalid>;

// `record` is whole, as PerfRing gives it; what is returned points into it. With `chains` samples
// have call chains.
PerfRecord ReadPerfRecord(Bytes record, bool chains);

// Divides a chain by its marks of contexts: calls `caller(mode, address)` for each caller,
// innermost first; the first address, the sample's own, is left out. Frames of contexts that are
// not of this kernel or its processes are left out. Returns how many of those there were.
template <typename F>
uint64_t ForEachCaller(Bytes chain, F caller) {
  uint64_t others = 0;
  bool known = false;
  bool first = true;
  Mode mode = Mode::kKernel;
  for (size_t at = 0; at + sizeof(uint64_t) <= chain.size(); at += sizeof(uint64_t)) {
    const auto word = LoadUnchecked<uint64_t>(chain.data() + at);
    if (word >= PERF_CONTEXT_MAX) {
      known = word == PERF_CONTEXT_KERNEL || word == PERF_CONTEXT_USER;
      mode = word == PERF_CONTEXT_USER ? Mode::kUser : Mode::kKernel;
      continue;
    }
    if (first) {
      first = false;
      continue;
    }
    if (known) {
      caller(mode, word);
    } else {
      ++others;
    }
  }
  return others;
}

}  // namespace xenoscope::sampler
