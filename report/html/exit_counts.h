// Counts the page's VM exits, and what PV guests did in Xen: how many of each, how long they took,
// and when. Memory is bounded by the kinds of exits and BinnedSums.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/sketch.h"
#include "base/tsc.h"
#include "correlate/binned_sums.h"
#include "correlate/timeline.h"
#include "report/profile/profile_view.h"

namespace xenoscope::report {

// The steps of lengths in the page's heat map: an octave has four, of equal length. The step of a
// length is 4 log2 of the power of two below it, and the quarter of the octave above that.
inline constexpr uint32_t kLengthStepsOfOctave = 4;
inline constexpr size_t kLengthSteps = 64 * kLengthStepsOfOctave;
[[nodiscard]] inline uint32_t LengthStep(Cycles length) {
  const auto above = static_cast<uint32_t>(std::countl_zero(length | 1U));
  // The two bits below the highest one.
  return kLengthStepsOfOctave * (63 - above) + static_cast<uint32_t>(length << above >> 61U & 3U);
}

// What an exit, or what is like one, was.
enum class ExitCause : uint8_t { kExit, kNestedExit, kMark };

// What is to be counted of an exit. Its time may come in parts, apart from it.
enum class Counted : uint8_t { kAll, kLength, kTime };

// An exit from `begin` on, or a part of one.
struct CountedExit {
  DomainId domain;
  ExitCause cause = ExitCause::kExit;
  Counted counted = Counted::kAll;
  uint32_t reason = 0;  // of kMark: MarkReason
  Tsc begin;
  Cycles length = 0;
};

// Hypercalls and traps have smaller numbers. Others, which guests may choose, are one.
inline constexpr uint32_t kMostMarkNumbers = 256;
// Returns CountedExit::reason of what a PV guest did in Xen.
[[nodiscard]] inline uint32_t MarkReason(const correlate::Mark& mark) {
  return static_cast<uint32_t>(mark.kind) | std::min(mark.number, kMostMarkNumbers) << 8U;
}

class ExitCounts {
 public:
  // The report must outlive this.
  explicit ExitCounts(const ProfileReport& report) : report_(report) {}

  // Counts the exits. O(1) for each. `part_come` is that of BinnedSums::SetPartCome, before them.
  void Take(std::span<const CountedExit> exits, double part_come = 1);
  // Counts what waits to be counted, after the last one.
  void Finish();

  // Returns, after Finish, `list` by domain and reason, those with most cycles first; `counts`,
  // `cycles` and `lengths` of them over time, and `length_steps`: of what the things of `lengths`
  // are (docs/schemas/page.schema.json). Errors: Internal when libdeflate fails.
  [[nodiscard]] absl::StatusOr<nlohmann::ordered_json> ToJson(Tsc zero) const;

 private:
  struct Key {
    DomainId domain;
    ExitCause cause = ExitCause::kExit;
    uint32_t reason = 0;  // of kMark: the MarkKind
    auto operator<=>(const Key&) const = default;
    // Returns all of it as one number.
    [[nodiscard]] uint64_t AsNumber() const {
      return uint64_t{domain.value} << 40U | static_cast<uint64_t>(cause) << 32U | reason;
    }
  };
  struct Sum {
    uint64_t count = 0;
    uint64_t cycles = 0;
  };
  // What the exits with lengths of one step are in lengths_.
  struct StepKey {
    uint32_t step = 0;
    uint32_t key = 0;
  };
  // Those that are counted at once, while what counts them is in the processor's caches.
  static constexpr size_t kAtOnce = 14;
  struct Exits {
    Key key;
    uint64_t key_number = 0;  // Key::AsNumber
    uint32_t number = 0;      // its place in exits_, and its key in counts_ and cycles_
    // Those that are not counted below yet.
    uint32_t waiting = 0;
    std::array<Tsc, kAtOnce> begins_waiting{};
    std::array<Cycles, kAtOnce> lengths_waiting{};
    uint64_t count = 0;
    uint64_t cycles = 0;
    correlate::BinnedSums::Open open_count{};   // of counts_
    correlate::BinnedSums::Open open_cycles{};  // of cycles_
    Sketch lengths{};
    // Those of the bin of lengths_ that has the instant `steps_at`, by step.
    Tsc steps_at{};
    std::array<uint64_t, kLengthSteps> by_step{};
    std::array<uint64_t, kLengthSteps / 64> has_step{};  // a bit for each that is not 0
    std::vector<StepKey> step_keys{};  // of the steps that exits had, which are few
    std::vector<Sum> parts{};          // of kMark: by the number of the hypercall or trap
  };
  Exits& ExitsOf(const Key& key) {
    // Domains have the same few reasons.
    const uint32_t mixed =
        key.reason + 67U * key.domain.value + 16U * static_cast<uint32_t>(key.cause);
    Exits*& recent = recent_[mixed % kRecent];
    if (recent == nullptr || recent->key_number != key.AsNumber()) [[unlikely]] {
      recent = &FindExits(key);
    }
    return *recent;
  }
  Exits& FindExits(const Key& key);
  // Adds an exit, or what is like one, with its time.
  void Add(Exits& exits, Tsc begin, Cycles length) {
    exits.begins_waiting[exits.waiting] = begin;
    exits.lengths_waiting[exits.waiting] = length;
    if (++exits.waiting == kAtOnce) CountWaiting(exits);
  }
  void CountWaiting(Exits& exits);
  // Exits, at least one, to be counted at once.
  struct Several {
    std::span<const Tsc> begins{};
    std::span<const Cycles> lengths{};
    // The bits in which their begins and ends differ from the first begin.
    uint64_t differences = 0;
  };
  [[nodiscard]] static Several SeveralOf(std::span<const Tsc> begins,
                                         std::span<const Cycles> lengths);
  // Count the times, and the numbers and lengths, of exits.
  void CountTimes(Exits& exits, const Several& all);
  void CountLengths(Exits& exits, const Several& all);
  // Puts by_step into lengths_.
  void CloseSteps(Exits& exits);
  uint32_t StepKeyOf(Exits& exits, uint32_t step);
  // Adds what a PV guest did in Xen.
  void AddMark(const CountedExit& mark);
  [[nodiscard]] std::string NameOf(const Key& key) const;
  [[nodiscard]] nlohmann::ordered_json ExitJson(const Exits& exits) const;

  const ProfileReport& report_;
  absl::flat_hash_map<uint64_t, uint32_t> numbers_;  // by Key::AsNumber
  // Some that were asked for last: exits of a few kinds follow each other.
  static constexpr size_t kRecent = 1024;
  std::array<Exits*, kRecent> recent_{};
  std::deque<Exits> exits_;  // by number
  correlate::BinnedSums counts_;
  correlate::BinnedSums cycles_;
  uint32_t all_length_keys_ = 0;
  correlate::BinnedSums lengths_;  // by StepKey::key
};

}  // namespace xenoscope::report
