// Builds the bytes of small traces, for tests: records and windows as Xen and xentrace write them.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "base/bytes.h"
#include "tests/unit/trace/record_ids.h"
#include "trace/record.h"
#include "trace/trace_file.h"
#include "trace/windows.h"

namespace xenoscope::trace {

// A vCPU packed in a word, as in most records.
constexpr uint32_t Vcpu(uint32_t domain, uint32_t vcpu) { return domain << 16 | vcpu; }
inline constexpr uint32_t kD1V0 = Vcpu(1, 0);
inline constexpr uint32_t kIdle = 0x7fff;  // the idle domain

// Returns the words of a record.
inline std::vector<uint32_t> Rec(uint32_t id, uint64_t tsc, std::initializer_list<uint32_t> extra) {
  const auto count = static_cast<uint32_t>(extra.size());
  std::vector<uint32_t> words{FirstWord::Pack(id, count, true).value, static_cast<uint32_t>(tsc),
                              static_cast<uint32_t>(tsc >> 32)};
  words.insert(words.end(), extra);
  return words;
}
// Returns the words of a record without a TSC.
inline std::vector<uint32_t> Rec(uint32_t id, std::initializer_list<uint32_t> extra) {
  std::vector<uint32_t> words{
      FirstWord::Pack(id, static_cast<uint32_t>(extra.size()), false).value};
  words.insert(words.end(), extra);
  return words;
}

class TraceBuilder {
 public:
  // Adds a window of `pcpu` with these records.
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

// Gives the trace's items to taker.Take(), in order.
template <typename Taker>
void Stream(const TraceBuilder& bytes, Taker& taker) {
  const auto file = TraceFile::FromBytes(bytes.bytes(), "test");
  ASSERT_TRUE(file.ok()) << file.status();
  OrderedStream stream = file->Stream();
  while (const Item* item = stream.Next()) taker.Take(*item);
}

}  // namespace xenoscope::trace
