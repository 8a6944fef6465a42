#include "analysis/partitions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "trace/cursor.h"
#include "trace/windows.h"

namespace xenoscope::analysis {
namespace {

// Length of a warm-up, as a part of the trace. A longer one is more likely to show every vCPU of
// the host. This length costs each thread but one an eightieth of the time of a single thread.
constexpr double kWarmUp = 1.0 / 32;
constexpr double kLongerWarmUp = 1.0 / 8;

// Cost of following, as a part of the cost of counting; measured on traces of HVM and PV guests.
constexpr double kWarmUpCost = 0.4;

// Least bytes of a thread: with fewer it is not worth its start.
constexpr uint64_t kMinBytes = uint64_t{4} << 20;

// Returns the time of the first record of the pCPU at this part of its bytes, in [0, 1).
std::optional<Tsc> TimeAt(const trace::TraceFile& file, const trace::PcpuWindows& pcpu,
                          double fraction) {
  const auto at = static_cast<size_t>(static_cast<double>(pcpu.windows.size()) * fraction);
  if (at >= pcpu.windows.size()) return std::nullopt;
  const trace::PcpuWindows rest{pcpu.pcpu, {pcpu.windows[at]}};
  trace::HeadCache heads;
  return trace::Cursor(file.bytes(), rest, heads).tsc();
}

}  // namespace

std::vector<PartitionBegin> PartitionTrace(const trace::TraceFile& file, unsigned threads) {
  const uint64_t worth = std::max<uint64_t>(file.bytes().size() / kMinBytes, 1);
  return PartitionTraceOfAnyLength(file, static_cast<unsigned>(std::min<uint64_t>(threads, worth)));
}

std::vector<PartitionBegin> PartitionTraceOfAnyLength(const trace::TraceFile& file,
                                                      unsigned threads) {
  std::vector<PartitionBegin> begins;
  const auto& pcpus = file.index().pcpus;
  // All pCPUs write at about the same time; the one with most windows has the finest times.
  const auto largest = std::max_element(
      pcpus.begin(), pcpus.end(),
      [](const auto& a, const auto& b) { return a.windows.size() < b.windows.size(); });
  if (largest == pcpus.end() || threads < 2) return begins;
  const double warming_up = kWarmUp * kWarmUpCost;
  const double partition = (1 - warming_up) / threads;  // length of all but the first
  for (unsigned i = 1; i < threads; ++i) {
    const double part = warming_up + partition * i;
    const std::optional<Tsc> time = TimeAt(file, *largest, part);
    const Tsc before = begins.empty() ? Tsc{0} : begins.back().at;
    if (!time || *time <= before) continue;
    const auto time_before = [&](double warm_up) {
      const double whole = std::max(warm_up, 1.5 / static_cast<double>(largest->windows.size()));
      return part > whole ? TimeAt(file, *largest, part - whole) : std::nullopt;
    };
    begins.push_back({*time, time_before(kWarmUp), time_before(kLongerWarmUp)});
  }
  return begins;
}

}  // namespace xenoscope::analysis
