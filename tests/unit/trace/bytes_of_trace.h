// Builds the bytes of small traces, for tests: records and windows as Xen and xentrace write them.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <vector>

#include "base/bytes.h"
#include "trace/windows.h"

namespace xenoscope::trace {

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

class TraceBytes {
 public:
  // A window of `pcpu` with these records.
  TraceBytes& Window(uint32_t pcpu, const std::vector<std::vector<uint32_t>>& records) {
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

}  // namespace xenoscope::trace
