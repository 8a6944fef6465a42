#include "correlate/nmi_matching.h"

#include <algorithm>

namespace xenoscope::correlate {
namespace {

// AMD64 Architecture Programmer's Manual, volume 2, appendix C: SVM intercept exit codes.
constexpr uint32_t kFirstException = 0x40;
constexpr uint32_t kBreakpoint = 0x43;
constexpr uint32_t kInvalidOpcode = 0x46;
constexpr uint32_t kLastException = 0x5f;
constexpr uint32_t kIntr = 0x60;
constexpr uint32_t kVintr = 0x64;
constexpr uint32_t kRdtsc = 0x6e;
constexpr uint32_t kCpuid = 0x72;
constexpr uint32_t kInvd = 0x76;
constexpr uint32_t kPause = 0x77;
constexpr uint32_t kHlt = 0x78;
constexpr uint32_t kMsr = 0x7c;
constexpr uint32_t kVmmcall = 0x81;
constexpr uint32_t kRdtscp = 0x87;
constexpr uint32_t kWbinvd = 0x89;
constexpr uint32_t kXsetbv = 0x8d;

constexpr uint64_t kLongestInstruction = 15;
constexpr Address kUpperHalf = 0xffff'8000'0000'0000;
constexpr Address kVsyscallPage = 0xffff'ffff'ff60'0;  // Linux's user code in the upper half
// The value of a pair, beside 1 for a strong match: no number of strong matches outweighs a pair.
constexpr uint64_t kPair = uint64_t{1} << 32;
constexpr size_t kMaxCells = size_t{1} << 22;  // the largest table of all pairs

std::vector<NmiMatch> MatchFirst(std::span<const GuestSample> samples,
                                 std::span<const ExitMark> nmi_exits, LoggedRip rule) {
  std::vector<NmiMatch> matches;
  size_t next = 0;
  for (size_t j = 0; j < nmi_exits.size(); ++j) {
    size_t i = next;
    while (i < samples.size() &&
           MatchQualityOf(nmi_exits[j], samples[i], rule) == MatchQuality::kNone)
      ++i;
    if (i == samples.size()) continue;  // its sample was lost
    matches.push_back({i, j});
    next = i + 1;
  }
  return matches;
}

}  // namespace

bool MayEnterAt(uint32_t reason, Address rip, Address entry) {
  const uint64_t moved = entry - rip;
  if (moved > kLongestInstruction) return false;
  // An interrupt or exception is delivered where the guest was; an instruction that faults stays.
  if (moved == 0) return true;
  if (reason >= kFirstException && reason <= kLastException) {
    if (reason == kBreakpoint) return moved == 1;
    return reason == kInvalidOpcode;  // which Xen may emulate
  }
  if (reason >= kIntr && reason <= kVintr) return false;
  switch (reason) {
    case kHlt:
      return moved == 1;
    case kRdtsc:
    case kCpuid:
    case kInvd:
    case kPause:
    case kMsr:
    case kWbinvd:
      return moved == 2;
    case kVmmcall:
    case kRdtscp:
    case kXsetbv:
      return moved == 3;
    default:
      return true;  // port and control register accesses, emulated memory accesses, ...
  }
}

MatchQuality MatchQualityOf(const ExitMark& exit, const GuestSample& sample, LoggedRip rule) {
  const bool agrees = rule == LoggedRip::kOfExit
                          ? sample.address == exit.rip
                          : exit.has_previous &&
                                MayEnterAt(exit.previous_reason, exit.previous_rip, sample.address);
  if (!agrees) return MatchQuality::kNone;
  const bool upper = exit.rip >= kUpperHalf && exit.rip >> 12 != kVsyscallPage;
  if (sample.mode == Mode::kUser) return upper ? MatchQuality::kNone : MatchQuality::kStrong;
  return upper ? MatchQuality::kStrong : MatchQuality::kWeak;
}

std::vector<NmiMatch> MatchNmiExits(std::span<const GuestSample> samples,
                                    std::span<const ExitMark> nmi_exits, LoggedRip rule) {
  const size_t rows = samples.size();
  const size_t columns = nmi_exits.size();
  if (columns > 0 && rows > kMaxCells / columns) return MatchFirst(samples, nmi_exits, rule);
  // best[i][j]: the largest value of pairs of samples from i on and exits from j on.
  std::vector<uint64_t> best((rows + 1) * (columns + 1), 0);
  const auto at = [&](size_t i, size_t j) -> uint64_t& { return best[i * (columns + 1) + j]; };
  std::vector<uint64_t> worth(rows * columns, 0);
  for (size_t i = rows; i-- > 0;) {
    for (size_t j = columns; j-- > 0;) {
      at(i, j) = std::max(at(i + 1, j), at(i, j + 1));
      const MatchQuality fit = MatchQualityOf(nmi_exits[j], samples[i], rule);
      if (fit == MatchQuality::kNone) continue;
      uint64_t& pair = worth[i * columns + j];
      pair = fit == MatchQuality::kStrong ? kPair + 1 : kPair;
      at(i, j) = std::max(at(i, j), at(i + 1, j + 1) + pair);
    }
  }
  std::vector<NmiMatch> matches;
  for (size_t i = 0, j = 0; i < rows && j < columns;) {
    const uint64_t pair = worth[i * columns + j];
    if (pair > 0 && at(i, j) == at(i + 1, j + 1) + pair) {
      matches.push_back({i++, j++});
    } else if (at(i + 1, j) >= at(i, j + 1)) {
      ++i;
    } else {
      ++j;
    }
  }
  return matches;
}

}  // namespace xenoscope::correlate
