// The page's list of VM exits, and of what PV guests did in Xen: how many of each, how long they
// took, and when. Memory is bounded by the kinds of exits and BinnedSums.
#pragma once

#include <array>
#include <bit>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/sketch.h"
#include "base/tsc.h"
#include "correlate/binned_sums.h"
#include "correlate/pv_entries.h"
#include "correlate/timeline.h"
#include "report/profile/profile_view.h"

namespace xenoscope::report {

// The steps of lengths in the page's heat map: an octave has four, of equal length. The step of a
// length is 4 log2 of the power of two below it, and the quarter of the octave above that.
inline constexpr uint32_t kLengthStepsOfOctave = 4;
inline constexpr size_t kLengthSteps = 64 * kLengthStepsOfOctave;
[[nodiscard]] inline uint32_t LengthStep(Cycles length) {
  const auto octave = static_cast<uint32_t>(std::bit_width(length | 1U) - 1);
  // The two bits below the highest one.
  const Cycles quarter = octave >= 2 ? length >> (octave - 2) : length << (2 - octave);
  return kLengthStepsOfOctave * octave + static_cast<uint32_t>(quarter & 3U);
}

class PageExitList {
 public:
  // The report must outlive this. It must have its vendor, names and sampled range, which is the
  // range shown, before the first exit.
  explicit PageExitList(const ProfileReport& report) : report_(report) {}

  // Adds the part `shown` of an exit's time. O(1).
  void AddTime(const correlate::Segment& segment, TscRange shown);
  // Adds an exit that is finished. O(1).
  void AddExit(const correlate::ExitArc& arc);
  // Add what PV guests did in Xen, with its bounds. O(log n).
  void OnMark(const correlate::Mark& mark) {
    pv_entries_.OnMark(mark, [this](const auto&... entry) { AddEntry(entry...); });
  }
  void OnRunstateInterval(const correlate::RunstateInterval& interval) {
    pv_entries_.OnRunstateInterval(interval, [this](const auto&... entry) { AddEntry(entry...); });
  }
  // Adds what no record has bounded, after the last one.
  void Finish();

  // Returns, after Finish, `list` by domain and reason, those with most cycles first; `counts`,
  // `cycles` and `lengths` of them over time, and `length_steps`: of what the things of `lengths`
  // are (docs/schemas/page.schema.json). Errors: Internal when libdeflate fails.
  [[nodiscard]] absl::StatusOr<nlohmann::ordered_json> ToJson(Tsc zero) const;

 private:
  enum class Cause : uint8_t { kExit, kNestedExit, kMark };
  struct Key {
    DomainId domain;
    Cause cause = Cause::kExit;
    uint32_t reason = 0;  // of kMark: the MarkKind
    auto operator<=>(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H hash, const Key& key) {
      return H::combine(std::move(hash), key.domain.value, key.cause, key.reason);
    }
  };
  struct Sum {
    uint64_t count = 0;
    uint64_t cycles = 0;
  };
  // The exits with lengths of one step.
  struct LengthOfStep {
    uint32_t step = 0;
    uint32_t key = 0;  // in lengths_
    correlate::BinnedSums::Open open{};
  };
  // The begin and the length of an exit.
  struct Length {
    Tsc begin;
    Cycles length = 0;
  };
  struct Exits {
    Key key;
    uint32_t number = 0;  // its place in exits_, and its key in counts_ and cycles_
    // Those that are not counted below yet: they are counted several at a time, while what counts
    // them is in the processor's caches.
    uint32_t waiting = 0;  // so many of `lengths_waiting`
    std::array<Length, 14> lengths_waiting{};
    uint64_t count = 0;
    uint64_t cycles = 0;
    correlate::BinnedSums::Open open_count{};   // of counts_
    correlate::BinnedSums::Open open_cycles{};  // of cycles_
    Sketch lengths{};
    std::vector<LengthOfStep> steps{};  // those that exits had, which are few
    // By step: its place in `steps`, and 1; 0: there is none.
    std::array<uint16_t, kLengthSteps> step_places{};
    std::vector<Sum> parts{};  // of kMark: by the number of the hypercall or trap
  };
  Exits& ExitsOf(const Key& key);
  LengthOfStep& StepOf(Exits& exits, uint32_t step) {
    const uint16_t place = exits.step_places[step];
    return place != 0 ? exits.steps[place - 1U] : NewStep(exits, step);
  }
  LengthOfStep& NewStep(Exits& exits, uint32_t step);
  void AddLength(Exits& exits, Tsc begin, Cycles length) {
    exits.lengths_waiting[exits.waiting++] = {begin, length};
    if (exits.waiting == exits.lengths_waiting.size()) CountWaiting(exits);
  }
  void CountWaiting(Exits& exits);
  // Adds what a PV guest did in Xen, and how long at most.
  void AddEntry(const correlate::Mark& mark, TscRange at_most);
  [[nodiscard]] std::string NameOf(const Key& key) const;
  [[nodiscard]] nlohmann::ordered_json ExitJson(const Exits& exits) const;

  const ProfileReport& report_;
  absl::flat_hash_map<Key, uint32_t> numbers_;
  // Some that were asked for last: exits of a few kinds follow each other.
  static constexpr size_t kRecent = 1024;
  std::array<Exits*, kRecent> recent_{};
  // The last one: an exit's time and the exit itself follow each other.
  Key last_key_{};
  Exits* last_ = nullptr;
  std::deque<Exits> exits_;  // by number
  correlate::PvEntryBounds pv_entries_{report_.sampled};
  correlate::BinnedSums counts_;
  correlate::BinnedSums cycles_;
  uint32_t all_length_keys_ = 0;
  correlate::BinnedSums lengths_;  // by LengthOfStep::key
};

}  // namespace xenoscope::report
