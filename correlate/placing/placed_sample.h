// A sample that has been given the places where it can have been taken, and who receives such
// samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "base/ids.h"
#include "base/mode.h"
#include "base/resolver.h"
#include "base/tsc.h"
#include "correlate/context.h"
#include "recording/sample.h"

namespace xenoscope::correlate {

// How a place was found.
enum class Placement : uint8_t {
  kInstant,    // the sample says when it was taken
  kNmiExit,    // the sample is an NMI exit of the trace
  kAtExit,     // logged as guest, taken in Xen as it left the guest otherwise: method.md §2.3
  kStopped,    // the trace has the instant at which the vCPU was stopped to be read
  kClocked,    // predicted by the sampling clock: method.md §3.4
  kBracketed,  // by the lengths of the intervals that agree with the sample's mode
  kUntraced,   // there is no trace
};
inline constexpr size_t kPlacements = 7;
// The key in JSON, which stays the same between versions.
[[nodiscard]] const char* ToString(Placement placement);

// Why a sample has no place.
enum class UnplacedReason : uint8_t {
  kOutsideTrace,   // its bracket ends before the trace begins, or begins after its end
  kUnknownVcpu,    // the trace never names its vCPU
  kNotRunning,     // its vCPU did not run within its bracket
  kModeDisagrees,  // its vCPU ran, but never in the sample's mode
  kTraceLost,      // records were lost where it must have been
  kOutOfOrder,     // it came later than its bracket's end allows; the timeline is forgotten there
};
inline constexpr size_t kUnplacedReasons = 6;
// The key in JSON, which stays the same between versions.
[[nodiscard]] const char* ToString(UnplacedReason reason);

// One place where a sample can have been taken. The weights of a sample's places sum to 1.
struct Place {
  Context context;
  PcpuId pcpu;
  double weight = 0;
  double length = weight;  // the weight by lengths alone, before it was refined
  // The vCPU whose time it is, if that is not the sample's: kSwitch, from the sample's vCPU.
  std::optional<VcpuRef> to{};
};

struct PlacedSample {
  const recording::Sample* sample = nullptr;
  VcpuRef vcpu;  // the vCPU that it was taken for: of a sample in Xen alone, the one that ran
  Address address = 0;  // the sample's address, repaired where that is not true
  Placement placement = Placement::kBracketed;
  // The cluster: the running interval that the sample was in, or is most likely to have been in.
  uint64_t cluster = 0;
  std::span<const Place> places;
  std::optional<FunctionId> function{};  // the sample's function, once it has been looked up
  // The time: the sample's own bracket, or what the trace has made of it, which is the instant of
  // its NMI exit or of its stop, what the sampling clock predicts with its error, or the time
  // between the NMI exits before and after it.
  TscRange when{};
  uint64_t list = 0;   // the number that samples with the same places share; 0: nobody shares them
  uint64_t count = 1;  // the samples that this one stands for, which its observer takes as equal

  // The mode of what was interrupted, which the sample's own mode is not at an exit.
  [[nodiscard]] Mode mode() const {
    return placement == Placement::kAtExit ? Mode::kXen : sample->mode;
  }
};

// Returns the function that the sample is in: the one that was looked up, else the resolver's.
[[nodiscard]] FunctionId FunctionOf(const PlacedSample& placed, Resolver& resolver);

// What a vCPU spent in a context.
struct ContextTime {
  Cycles cycles = 0;
  uint64_t stays = 0;  // kGuest: how often it entered the guest
  // kGuest: the median of the lengths of the vCPU's stays in the guest, so far; 0: not known.
  Cycles median_stay = 0;
};

// Receives each sample once, placed or not, and all traced time.
class PlacingObserver {
 public:
  virtual ~PlacingObserver() = default;
  virtual void OnPlaced(const PlacedSample& sample) = 0;
  virtual void OnUnplaced(const recording::Sample& sample, UnplacedReason why) = 0;
  // The vCPU spent `time` in the context while samples were taken. In ContextKind::kLost a pCPU
  // did, and `vcpu` means nothing. The time of one vCPU and context may come in several parts, at
  // any time.
  virtual void OnTraced(VcpuRef vcpu, Context context, ContextTime time) = 0;
};

// Yields samples in the order of the ends of their brackets; those of one vCPU in the order in
// which they were taken.
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  // Returns the next sample, which is valid until the next call; null at the end.
  [[nodiscard]] virtual const recording::Sample* Next() = 0;
};

}  // namespace xenoscope::correlate
