// Builds the bytes of small traces, for tests: records and windows as Xen and xentrace write them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "base/bytes.h"
#include "trace/trace_file.h"
#include "trace/windows.h"

namespace xenoscope::trace {

// The numbers of RUNSTATE_CHANGE by the states before and after, and of CONTINUE_RUNNING.
inline constexpr uint32_t kRunnableToRunning = 0x21101;
inline constexpr uint32_t kRunningToRunnable = 0x21011;
inline constexpr uint32_t kRunningToBlocked = 0x21021;
inline constexpr uint32_t kBlockedToRunnable = 0x21211;
inline constexpr uint32_t kContinueRunning = 0x21002;

// A vCPU packed in a word as in these records.
constexpr uint32_t Vcpu(uint32_t domain, uint32_t vcpu) { return domain << 16 | vcpu; }
inline constexpr uint32_t kD1V0 = Vcpu(1, 0);
inline constexpr uint32_t kIdle = 0x7fff;  // its domain

// One record's words.
inline std::vector<uint32_t> Rec(uint32_t id, uint64_t tsc, std::initializer_list<uint32_t> extra) {
  std::vector<uint32_t> words{id | static_cast<uint32_t>(extra.size()) << 28 | 1U << 31,
                              static_cast<uint32_t>(tsc), static_cast<uint32_t>(tsc >> 32)};
  words.insert(words.end(), extra);
  return words;
}
// One without a TSC.
inline std::vector<uint32_t> Rec(uint32_t id, std::initializer_list<uint32_t> extra) {
  std::vector<uint32_t> words{id | static_cast<uint32_t>(extra.size()) << 28};
  words.insert(words.end(), extra);
  return words;
}

class TraceBuilder {
 public:
  // A window of `pcpu` with these records.
  TraceBuilder& Window(uint32_t pcpu, const std::vector<std::vector<uint32_t>>& records) {
    size_t count = 0;
    for (const auto& record : records) count += record.size();
    words_.insert(words_.end(), {kWindowHeaderWord, pcpu, static_cast<uint32_t>(count * 4)});
    for (const auto& record : records) words_.insert(words_.end(), record.begin(), record.end());
    return *this;
  }
  std::vector<uint32_t>& words() { return words_; }
  Bytes bytes() const { return std::as_bytes(std::span(words_)); }

 private:
  std::vector<uint32_t> words_;
};

// Hands the trace's items to taker.Take(), in order.
template <typename Taker>
void Stream(const TraceBuilder& bytes, Taker& taker) {
  const auto file = TraceFile::FromBytes(bytes.bytes(), "test");
  ASSERT_TRUE(file.ok()) << file.status();
  OrderedStream stream = file->Stream();
  while (const Item* item = stream.Next()) taker.Take(*item);
}

}  // namespace xenoscope::trace
