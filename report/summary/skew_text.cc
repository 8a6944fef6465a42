#include "report/summary/skew_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "report/table/table_text.h"

namespace xenoscope::report {
namespace {

// Returns "1.02 ms to 1.03 ms behind".
std::string RangeText(correlate::SkewRange range, Clock clock) {
  const bool behind = range.min + range.max < 0;
  if (behind) range = {-range.max, -range.min};
  const auto time = [&](int64_t cycles) {
    const auto length = static_cast<Cycles>(std::max<int64_t>(cycles, 0));
    return CellText(clock.Seconds(length), ColumnUnit::kSeconds);
  };
  const char* const side = behind ? "behind" : "ahead of";
  if (range.max >= correlate::kUnboundedSkew) {
    return fmt::format("at least {} {}", time(range.min), side);
  }
  return fmt::format("{} to {} {}", time(range.min), time(range.max), side);
}

}  // namespace

std::string SkewText(const correlate::ClockSkew& skew, Clock clock) {
  const std::string reference = fmt::format("p{}'s", skew.reference.value);
  std::string text = fmt::format("  p{}'s clock is ", skew.pcpu.value);
  switch (skew.kind) {
    case correlate::SkewKind::kConstant:
      text += fmt::format("{} {}", RangeText(skew.first, clock), reference);
      break;
    case correlate::SkewKind::kDrifting:
      text += fmt::format("{} {} at first and {} it at last", RangeText(skew.first, clock),
                          reference, RangeText(skew.last, clock));
      break;
    case correlate::SkewKind::kUnknown:
      text += fmt::format("not {}; the difference is unknown", reference);
      break;
  }
  text += fmt::format("; the first proof is at byte {}", skew.proof_offset);
  if (skew.kind != correlate::SkewKind::kConstant || skew.first.min <= -correlate::kUnboundedSkew ||
      skew.first.max >= correlate::kUnboundedSkew) {
    return text + "\n";
  }
  return text + fmt::format("\n  --tsc-offset {}:{} corrects it\n", skew.pcpu.value,
                            -(skew.first.min + skew.first.max) / 2);
}

std::string SkewNote(const std::vector<correlate::ClockSkew>& skews, Clock clock) {
  std::string text = "the clocks of pCPUs differ, so records may be in the wrong order\n";
  for (const correlate::ClockSkew& skew : skews) text += SkewText(skew, clock);
  text.pop_back();  // the caller prints the end of the last line
  return text;
}

}  // namespace xenoscope::report
