#include "analysis/slices.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "trace/cursor.h"
#include "trace/windows.h"

namespace xenoscope::analysis {
namespace {

// What following costs, as a part of counting: measured on traces of HVM and PV guests.
constexpr double kFollowingCost = 0.45;

// A thread that has less than this to do is not worth its start.
constexpr uint64_t kLeastBytes = uint64_t{4} << 20;

// Where, as a part of the trace, each slice begins: slice k takes what it follows and what it
// counts the same time.
std::vector<double> Fractions(unsigned slices) {
  std::vector<double> begins;
  double total = 0;  // in units of the first slice
  for (unsigned i = 0; i < slices; ++i) {
    begins.push_back(total);
    total += std::max(1 - kFollowingCost * total, 0.1);
  }
  for (double& begin : begins) begin /= total;
  return begins;
}

// The time of the first record of the pCPU at this part of its bytes.
std::optional<Tsc> TimeAt(const trace::TraceFile& file, const trace::PcpuWindows& pcpu,
                          double fraction) {
  const auto at = static_cast<size_t>(static_cast<double>(pcpu.windows.size()) * fraction);
  if (at >= pcpu.windows.size()) return std::nullopt;
  const trace::PcpuWindows rest{pcpu.pcpu, {pcpu.windows[at]}};
  return trace::Cursor(file.bytes(), rest).tsc();
}

}  // namespace

std::vector<Tsc> SliceTimes(const trace::TraceFile& file, unsigned threads) {
  const uint64_t worth = std::max<uint64_t>(file.bytes().size() / kLeastBytes, 1);
  return SliceTimesOfAnyLength(file, static_cast<unsigned>(std::min<uint64_t>(threads, worth)));
}

std::vector<Tsc> SliceTimesOfAnyLength(const trace::TraceFile& file, unsigned threads) {
  std::vector<Tsc> times;
  const auto& pcpus = file.index().pcpus;
  // All pCPUs write at about the same time; the one with most windows tells it most finely.
  const auto most = std::max_element(pcpus.begin(), pcpus.end(), [](const auto& a, const auto& b) {
    return a.windows.size() < b.windows.size();
  });
  if (most == pcpus.end() || threads < 2) return times;
  for (const double fraction : Fractions(threads)) {
    if (fraction == 0) continue;
    const std::optional<Tsc> time = TimeAt(file, *most, fraction);
    const Tsc before = times.empty() ? Tsc{0} : times.back();
    if (time && *time > before) times.push_back(*time);
  }
  return times;
}

}  // namespace xenoscope::analysis
