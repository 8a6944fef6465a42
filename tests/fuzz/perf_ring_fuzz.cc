// Fuzzes a ring of perf events. There is no crash, no hang, and no read outside of the ring. Bytes
// 0..7 are data_head, 8..15 data_tail, the rest is the ring.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <variant>
#include <vector>

#include "base/bytes.h"
#include "sampler/perf/perf_records.h"
#include "sampler/perf/perf_ring.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using xenoscope::Bytes;
  namespace sampler = xenoscope::sampler;
  const Bytes bytes = std::as_bytes(std::span(data, size));
  perf_event_mmap_page page{};
  page.data_head = xenoscope::Load<uint64_t>(bytes, 0).value_or(0);
  page.data_tail = xenoscope::Load<uint64_t>(bytes, 8).value_or(0);
  std::vector<std::byte> ring(4096);
  for (size_t i = 16; i < bytes.size() && i - 16 < ring.size(); ++i) ring[i - 16] = bytes[i];
  sampler::PerfRing reader({&page, ring.data(), ring.size()});
  uint64_t taken = 0;
  reader.Drain([&](Bytes record) {
    taken += record.size();
    for (const int parts : {0, 1, 2, 3, 4, 5, 6, 7}) {
      const sampler::PerfRecord found = sampler::ReadPerfRecord(
          record,
          {.chain = (parts & 1) != 0, .branches = (parts & 4) != 0, .stack = (parts & 2) != 0});
      const auto* const sample = std::get_if<sampler::PerfSample>(&found);
      if (sample == nullptr) continue;
      size_t callers = 0;
      sampler::ForEachCaller(sample->chain, [&](xenoscope::Mode, uint64_t) { ++callers; });
      size_t calls = 0;
      sampler::ForEachCallerOfBranches(sample->branches, false, [&](uint64_t) { ++calls; });
      if (callers * 8 + calls * sampler::kBranchBytes + sample->stack.size() > record.size()) {
        std::abort();
      }
    }
  });
  if (taken + reader.damaged() > ring.size() || page.data_tail != page.data_head) std::abort();
  return 0;
}
