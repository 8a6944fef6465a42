#include "analysis/limits.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>

#include "base/error.h"
#include "trace/ordered_stream.h"

namespace xenoscope::analysis {
namespace {

struct TscJump {
  Cycles cycles = 0;
  uint64_t offset = 0;  // offset in bytes of the record after the jump
};

// Returns the longest time, in cycles, between two items of the stream.
TscJump LongestTscJump(const trace::TraceFile& file) {
  TscJump longest;
  std::optional<Tsc> last;
  trace::OrderedStream stream = file.Stream();
  while (const trace::Item* item = stream.Next()) {
    const Tsc tsc = item->record.tsc;
    if (last && tsc - *last > longest.cycles) longest = {tsc - *last, item->record.offset};
    last = tsc;
  }
  return longest;
}

}  // namespace

absl::Status CheckLimits(const trace::TraceFile& file, const correlate::TimelineFaults& faults,
                         uint64_t vcpus, TscRange range) {
  if (faults.vcpus_over_limit > 0) {
    return InvalidError("{}: more than {} vCPUs; the first one beyond is at byte {}", file.name(),
                        correlate::Timeline::kMaxVcpus, faults.first_over_limit_offset);
  }
  vcpus = std::max<uint64_t>(vcpus, 1);
  if (range.Length() <= std::numeric_limits<uint64_t>::max() / 2 / vcpus) return absl::OkStatus();
  const TscJump jump = LongestTscJump(file);
  return InvalidError(
      "{}: its times are {} cycles apart, too far to add them up over {} vCPUs; before byte {} "
      "{} cycles pass: the clock of that pCPU is damaged, or not that of the others (--tsc-offset)",
      file.name(), range.Length(), vcpus, jump.offset, jump.cycles);
}

}  // namespace xenoscope::analysis
