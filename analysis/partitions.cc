#include "analysis/partitions.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "trace/cursor.h"
#include "trace/windows.h"

namespace xenoscope::analysis {
namespace {

// Length of a warm-up, as a part of the trace. A longer one is more likely to show every vCPU of
// the host. This length costs each thread but one an eightieth of the time of a single thread.
constexpr double kWarmUp = 1.0 / 32;
constexpr double kLongerWarmUp = 1.0 / 8;
// Least windows of a warm-up.
constexpr size_t kLeastWarmUp = 2;

// Cost of following, as a part of the cost of counting; measured on traces of HVM and PV guests.
constexpr double kWarmUpCost = 0.4;

// Least bytes of a thread: with fewer it is not worth its start.
constexpr uint64_t kMinBytes = uint64_t{4} << 20;

// Returns the pCPU's bytes before each of its windows, and, last, all of its bytes.
std::vector<uint64_t> BytesBefore(const trace::PcpuWindows& pcpu) {
  std::vector<uint64_t> before = {0};
  before.reserve(pcpu.windows.size() + 1);
  for (const trace::Window& window : pcpu.windows) {
    before.push_back(before.back() + (window.end - window.begin));
  }
  return before;
}

// Returns the window that begins nearest to this part of the pCPU's bytes, in [0, 1), or the number
// of windows if their end is nearer.
size_t WindowNear(const std::vector<uint64_t>& before, double part) {
  const auto bytes = static_cast<uint64_t>(static_cast<double>(before.back()) * part);
  const auto next = std::ranges::lower_bound(before, bytes);
  const auto window = static_cast<size_t>(next - before.begin());
  return *next > bytes && bytes - *(next - 1) < *next - bytes ? window - 1 : window;
}

// Returns the time of the first record of the window; nullopt if there is no such window or record.
std::optional<Tsc> TimeOf(const trace::TraceFile& file, const trace::PcpuWindows& pcpu,
                          size_t window) {
  if (window >= pcpu.windows.size()) return std::nullopt;
  const trace::PcpuWindows one{pcpu.pcpu, {pcpu.windows[window]}, pcpu.tsc_offset};
  trace::HeadCache heads;
  return trace::Cursor(file.bytes(), one, heads).tsc();
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
  const std::vector<uint64_t> bytes_before = BytesBefore(*largest);
  const double warming_up = kWarmUp * kWarmUpCost;
  const double partition = (1 - warming_up) / threads;  // length of all but the first
  for (unsigned i = 1; i < threads; ++i) {
    const double part = warming_up + partition * i;
    const size_t window = WindowNear(bytes_before, part);
    const std::optional<Tsc> time = TimeOf(file, *largest, window);
    const Tsc before = begins.empty() ? Tsc{0} : begins.back().at;
    if (!time || *time <= before) continue;
    const auto time_before = [&](double warm_up) -> std::optional<Tsc> {
      if (window <= kLeastWarmUp || part <= warm_up) return std::nullopt;
      const size_t from = WindowNear(bytes_before, part - warm_up);
      return TimeOf(file, *largest, std::min(from, window - kLeastWarmUp));
    };
    begins.push_back({*time, time_before(kWarmUp), time_before(kLongerWarmUp)});
  }
  return begins;
}

}  // namespace xenoscope::analysis
