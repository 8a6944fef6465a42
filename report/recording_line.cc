#include "report/recording_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace xenoscope::report {
namespace {

constexpr double kWorthAWarning = 0.01;

std::string Bytes(double bytes) {
  constexpr double kMega = 1e6;
  constexpr double kGiga = 1e9;
  return bytes < kGiga ? fmt::format("{:.1f} MB", bytes / kMega)
                       : fmt::format("{:.1f} GB", bytes / kGiga);
}

// Returns "56 %", "< 1 %".
std::string Part(double part) {
  return part < kWorthAWarning ? "< 1 %" : fmt::format("{:.0f} %", 100 * part);
}

struct DomainRate {
  std::string name;
  double hz;
};

// Returns the rates of the domains, the busiest first.
std::vector<DomainRate> Rates(const RecordingState& before, const RecordingState& now) {
  const double seconds = std::max(now.seconds - before.seconds, 1e-3);
  std::vector<DomainRate> rates;
  for (const DomainSamples& domain : now.domains) {
    const auto earlier = std::ranges::find(before.domains, domain.name, &DomainSamples::name);
    const uint64_t had = earlier == before.domains.end() ? 0 : earlier->samples;
    const uint64_t more = domain.samples - std::min(had, domain.samples);
    rates.push_back({domain.name, static_cast<double>(more) / seconds});
  }
  std::ranges::stable_sort(rates, std::greater<>(), &DomainRate::hz);
  return rates;
}

}  // namespace

std::string RecordingLine(const RecordingState& before, const RecordingState& now, size_t width) {
  const std::vector<DomainRate> rates = Rates(before, now);
  double all = 0;
  for (const DomainRate& rate : rates) all += rate.hz;
  std::string head = fmt::format("{:.0f} s", now.seconds);
  if (now.sampling) head += fmt::format(": {:.0f} samples/s", all);
  std::string tail;
  if (now.sampling) tail += fmt::format("; {} lost", now.lost);
  const double seconds = std::max(now.seconds - before.seconds, 1e-3);
  if (now.tracing) {
    const auto more = static_cast<double>(now.trace_bytes - before.trace_bytes);
    tail += fmt::format("; trace {}/s", Bytes(more / seconds));
    if (now.lost_trace > 0) tail += fmt::format(", {} of it lost", Part(now.lost_trace));
  }
  tail += fmt::format("; {} free", Bytes(static_cast<double>(now.disk_left)));
  tail += fmt::format("; own CPU {:.1f} %", 100 * (now.own_cpu - before.own_cpu) / seconds);

  // The line names as many domains as fit, and the number of the others.
  std::string domains;
  for (size_t i = 0; i < rates.size(); ++i) {
    const std::string one =
        fmt::format("{}{} {:.0f}", i == 0 ? " (" : ", ", rates[i].name, rates[i].hz);
    const std::string rest =
        i + 1 < rates.size() ? fmt::format(", {} more)", rates.size() - i - 1) : ")";
    if (head.size() + domains.size() + one.size() + rest.size() + tail.size() > width) {
      if (i > 0) domains += fmt::format(", {} more)", rates.size() - i);
      break;
    }
    domains += one;
    if (i + 1 == rates.size()) domains += ")";
  }
  return (head + domains + tail).substr(0, width);
}

std::optional<std::string> LossWarning(uint64_t kept, uint64_t lost) {
  const double share = lost == 0 ? 0 : static_cast<double>(lost) / static_cast<double>(kept + lost);
  if (share <= kWorthAWarning) return std::nullopt;
  return fmt::format(
      "WARNING: {:.1f} % of the samples were lost ({} of {}), since buffers were full when they "
      "were drained; a shorter --drain-interval, fewer samples (-e EVENT:PERIOD) or, for domains "
      "started since, a larger --buffer-samples keeps them",
      100 * share, lost, kept + lost);
}

std::optional<std::string> LateDrainWarning(const DrainIntervals& drains, bool boosted) {
  constexpr double kLateMedian = 2;
  constexpr double kLateP99 = 5;
  if (drains.median <= kLateMedian * drains.asked && drains.p99 < kLateP99 * drains.asked) {
    return std::nullopt;
  }
  return fmt::format(
      "WARNING: dom0 got its turn too late: {} was drained every {:.1f} ms (99 % within {:.1f} "
      "ms), and {:.1f} ms were asked for, so sample times are coarse; {}dom0 needs a pCPU of its "
      "own "
      "(boot options dom0_max_vcpus=1 dom0_vcpus_pin, and guests pinned to other pCPUs) or fewer "
      "busy vCPUs beside it",
      drains.source, 1e3 * drains.median, 1e3 * drains.p99, 1e3 * drains.asked,
      boosted
          ? "with --boost it still is: "
          : "record with --boost, or raise dom0's weight (xl sched-credit2 -d 0 -w 2048); where "
            "that is not enough, ");
}

std::optional<std::string> TraceLossWarning(uint64_t records, double time, uint32_t pages) {
  if (time <= kWorthAWarning) return std::nullopt;
  return fmt::format(
      "WARNING: in {:.1f} % of the time the trace was lost ({} records), since Xen's buffers of {} "
      "pages for each pCPU were full before xentrace emptied them: only samples say what ran "
      "then; fewer events (--trace-events), a shorter --trace-poll, more time of a pCPU for dom0 "
      "or, after a reboot of the host, a larger --trace-buffer keep it",
      100 * time, records, pages);
}

}  // namespace xenoscope::report
