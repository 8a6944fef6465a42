#include "report/summary/guest_clock_text.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "report/table/table_text.h"

namespace xenoscope::report {
namespace {

// Returns "-46,759,226,432" for such a number.
std::string Signed(int64_t cycles) {
  const auto size =
      cycles < 0 ? uint64_t{0} - static_cast<uint64_t>(cycles) : static_cast<uint64_t>(cycles);
  return fmt::format("{}{}", cycles < 0 ? "-" : "", CellText(size, ColumnUnit::kCount));
}

std::string EpochText(const correlate::ClockEpoch& epoch, Tsc begin, Clock clock) {
  const int64_t min = epoch.ranges.front().min;
  const int64_t max = epoch.ranges.back().max;
  const auto width = static_cast<Cycles>(max - min);
  std::string text = fmt::format("{} to {} cycles ({} wide", Signed(min), Signed(max),
                                 CellText(clock.Seconds(width), ColumnUnit::kSeconds));
  if (epoch.ranges.size() > 1) text += fmt::format(", one of {} ranges", epoch.ranges.size());
  return text + fmt::format("); {} events from {:.3f} to {:.3f} s",
                            CellText(epoch.events, ColumnUnit::kCount),
                            clock.Seconds(epoch.begin - begin), clock.Seconds(epoch.end - begin));
}

}  // namespace

std::string GuestClockText(const std::vector<correlate::DomainClock>& clocks, Tsc begin,
                           Clock clock) {
  if (clocks.empty()) return "";
  std::string text = "guests' TSC - host's TSC, proven by where their events can have been:\n";
  size_t shown = 0;
  for (const correlate::DomainClock& guest : clocks) {
    if (shown++ == kMostGuestClocks) {
      text += fmt::format("  ({} more; --format json)\n", clocks.size() - kMostGuestClocks);
      break;
    }
    for (const correlate::ClockEpoch& epoch : guest.epochs) {
      text += fmt::format("  {}: {}\n", ToString(guest.domain), EpochText(epoch, begin, clock));
    }
    if (guest.outside > 0) {
      text += fmt::format("  {}: {} other events contradict this\n", ToString(guest.domain),
                          CellText(guest.outside, ColumnUnit::kCount));
    }
  }
  return text;
}

nlohmann::ordered_json JsonGuestClock(const correlate::DomainClock& clock) {
  nlohmann::ordered_json out = {{"domain", clock.domain.value},
                                {"numbers", clock.numbers},
                                {"outside", clock.outside},
                                {"unknown", clock.unknown},
                                {"epochs", nlohmann::ordered_json::array()}};
  for (const correlate::ClockEpoch& epoch : clock.epochs) {
    nlohmann::ordered_json ranges = nlohmann::ordered_json::array();
    for (const correlate::OffsetRange& range : epoch.ranges) {
      ranges.push_back({{"least", range.min}, {"most", range.max}});
    }
    out["epochs"].push_back({{"begin", epoch.begin.value},
                             {"end", epoch.end.value},
                             {"events", epoch.events},
                             {"ranges", std::move(ranges)}});
  }
  return out;
}

}  // namespace xenoscope::report
