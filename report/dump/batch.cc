#include "report/dump/batch.h"

#include <algorithm>
#include <array>
#include <bit>

namespace xenoscope::report {
namespace {

constexpr unsigned kDigitBits = 11;
constexpr size_t kDigits = size_t{1} << kDigitBits;

// Sorts the keys by the bits [shift, shift + kDigitBits) into `sorted`; equal ones keep their
// order.
void SortByDigit(const std::vector<uint64_t>& keys, unsigned shift, std::vector<uint64_t>& sorted) {
  std::array<uint32_t, kDigits> places{};
  for (const uint64_t key : keys) ++places[key >> shift & (kDigits - 1)];
  uint32_t before = 0;
  for (uint32_t& place : places) {
    const uint32_t count = place;
    place = before;
    before += count;
  }
  for (const uint64_t key : keys) sorted[places[key >> shift & (kDigits - 1)]++] = key;
}

}  // namespace

// A radix sort, as each pCPU's entries are many and close together. Most batches of one pCPU are in
// order before.
void Batch::Sort() {
  keys_.resize(entries.size());
  uint64_t last = 0;
  uint64_t all_bits = 0;
  bool sorted = true;
  for (size_t i = 0; i < entries.size(); ++i) {
    const uint64_t key = (entries[i].tsc - begin) << kIndexBits | i;
    sorted = sorted && key >= last;
    last = keys_[i] = key;
    all_bits |= key;
  }
  if (sorted) return;
  spare_.resize(keys_.size());
  for (unsigned shift = kIndexBits; shift < 64 && all_bits >> shift != 0; shift += kDigitBits) {
    SortByDigit(keys_, shift, spare_);
    std::swap(keys_, spare_);
  }
}

size_t Batch::CountBefore(Tsc at) const {
  const auto later = std::ranges::partition_point(
      keys_, [&](uint64_t key) { return entries[key % kMaxEntries].tsc < at; });
  return static_cast<size_t>(later - keys_.begin());
}

void Batch::Load(Bytes file, const Entry& entry, PcpuId pcpu, trace::Record& record) {
  const std::byte* at = file.data() + entry.place;
  const trace::FirstWord header{LoadUnchecked<uint32_t>(at)};
  record.tsc = entry.tsc;
  record.offset = entry.place;
  record.id = header.id();
  record.event = entry.event();
  record.has_tsc = header.has_tsc();
  record.words = static_cast<uint8_t>(header.words());
  record.pcpu = pcpu;
  record.payload = trace::Payload(at + header.PayloadOffset(), header.words());
}

}  // namespace xenoscope::report
