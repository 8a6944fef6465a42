#include "analysis/trace_division.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "correlate/pcpu_groups.h"
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

// Least bytes of a step, and most steps of a trace: finer ones gain nothing. As
// correlate::PcpuGroups ends a window with each step, a step also has some windows.
constexpr uint64_t kMinStepBytes = uint64_t{256} << 10;
constexpr uint64_t kMaxSteps = 64;
constexpr uint64_t kWindowsOfStep = 4;

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

// Adds the step that begins at this part of the pCPU's bytes. Returns whether one begins there.
bool AddStep(const trace::TraceFile& file, const trace::PcpuWindows& pcpu,
             const std::vector<uint64_t>& bytes_before, double part,
             std::vector<PartitionBegin>& begins) {
  const size_t window = WindowNear(bytes_before, part);
  const std::optional<Tsc> time = TimeOf(file, pcpu, window);
  const Tsc before = begins.empty() ? Tsc{0} : begins.back().at;
  if (window == 0 || !time || *time < before) return false;
  if (*time == before) return true;
  const auto time_before = [&](double warm_up) -> std::optional<Tsc> {
    if (window <= kLeastWarmUp || part <= warm_up) return std::nullopt;
    const size_t from = WindowNear(bytes_before, part - warm_up);
    return TimeOf(file, pcpu, std::min(from, window - kLeastWarmUp));
  };
  begins.push_back({*time, time_before(kWarmUp), time_before(kLongerWarmUp)});
  return true;
}

}  // namespace

TraceDivision PartitionAtEach(std::vector<PartitionBegin> begins) {
  TraceDivision division{.begins = std::move(begins), .starts = {}};
  division.starts.resize(division.begins.size() + 1);
  std::iota(division.starts.begin(), division.starts.end(), size_t{0});
  return division;
}

TraceDivision DivideTrace(const trace::TraceFile& file, unsigned threads) {
  const uint64_t bytes = file.bytes().size();
  const auto worth = [bytes](uint64_t least) { return std::max<uint64_t>(bytes / least, 1); };
  const auto all = static_cast<unsigned>(std::min<uint64_t>(threads, worth(kMinBytes)));
  const uint64_t window = correlate::kGroupWindowBytes * file.index().pcpus.size();
  const uint64_t step = std::max(kMinStepBytes, kWindowsOfStep * window);
  const uint64_t steps = std::min<uint64_t>(worth(step), kMaxSteps);
  return DivideTraceOfAnyLength(file, all, std::max<size_t>(steps / all, 1));
}

TraceDivision DivideTraceOfAnyLength(const trace::TraceFile& file, unsigned threads, size_t steps) {
  TraceDivision division;
  const auto& pcpus = file.index().pcpus;
  // All pCPUs write at about the same time; the one with most windows has the finest times.
  const auto largest = std::max_element(
      pcpus.begin(), pcpus.end(),
      [](const auto& a, const auto& b) { return a.windows.size() < b.windows.size(); });
  if (largest == pcpus.end() || threads < 2) return division;
  const std::vector<uint64_t> bytes_before = BytesBefore(*largest);
  const double warming_up = kWarmUp * kWarmUpCost;
  const double partition = (1 - warming_up) / threads;  // length of all but the first
  for (unsigned thread = 0; thread < threads; ++thread) {
    const double begin = thread == 0 ? 0 : warming_up + partition * thread;
    const double end = warming_up + partition * (thread + 1);
    for (size_t step = thread == 0 ? 1 : 0; step < steps; ++step) {
      const double part =
          begin + (end - begin) * static_cast<double>(step) / static_cast<double>(steps);
      if (!AddStep(file, *largest, bytes_before, part, division.begins)) continue;
      if (step == 0 && division.begins.size() > division.starts.back()) {
        division.starts.push_back(division.begins.size());
      }
    }
  }
  return division;
}

}  // namespace xenoscope::analysis
