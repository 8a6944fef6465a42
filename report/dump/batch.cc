#include "report/dump/batch.h"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>
#include <utility>

namespace xenoscope::report {
namespace {

constexpr unsigned kDigitBits = 11;
constexpr size_t kDigits = size_t{1} << kDigitBits;
constexpr unsigned kMostPasses = (64 - Batch::kIndexBits + kDigitBits - 1) / kDigitBits;

// The digit of a key that a pass sorts by, the lowest first.
size_t DigitOf(uint64_t key, unsigned pass) {
  return key >> (Batch::kIndexBits + pass * kDigitBits) & (kDigits - 1);
}

// The number of keys of each digit.
using Counts = std::array<uint32_t, kDigits>;

// Sorts the keys by the digit into `sorted`; equal ones keep their order.
void SortByDigit(const std::vector<uint64_t>& keys, unsigned pass, Counts& counts,
                 std::vector<uint64_t>& sorted) {
  uint32_t before = 0;
  for (uint32_t& count : counts) before += std::exchange(count, before);
  for (const uint64_t key : keys) sorted[counts[DigitOf(key, pass)]++] = key;
}

}  // namespace

// A radix sort, as each pCPU's entries are many and close together.
void Batch::Sort() {
  keys_.resize(entries.size());
  if (entries.empty() || entries.front().pcpu_index == entries.back().pcpu_index) {
    std::iota(keys_.begin(), keys_.end(), uint64_t{0});  // one pCPU's are in order
    return;
  }
  std::array<Counts, kMostPasses> counts{};
  const auto most_bits = static_cast<unsigned>(std::bit_width(end - begin));
  const unsigned passes = (most_bits + kDigitBits - 1) / kDigitBits;
  for (size_t i = 0; i < entries.size(); ++i) {
    const uint64_t key = (entries[i].tsc - begin) << kIndexBits | i;
    keys_[i] = key;
    for (unsigned pass = 0; pass < passes; ++pass) ++counts[pass][DigitOf(key, pass)];
  }
  spare_.resize(keys_.size());
  for (unsigned pass = 0; pass < passes; ++pass) {
    SortByDigit(keys_, pass, counts[pass], spare_);
    std::swap(keys_, spare_);
  }
}

size_t Batch::CountBefore(Tsc at) const {
  const auto later = std::ranges::partition_point(
      keys_, [&](uint64_t key) { return entries[key % kMaxEntries].tsc < at; });
  return static_cast<size_t>(later - keys_.begin());
}

}  // namespace xenoscope::report
