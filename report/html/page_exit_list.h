// The page's list of VM exits, and of what PV guests did in Xen: how many of each, how long they
// took, and when. Memory is bounded by the kinds of exits and BinnedSums.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <nlohmann/json_fwd.hpp>
#include <optional>
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
[[nodiscard]] uint32_t LengthStep(Cycles length);

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
  void OnMark(const correlate::Mark& mark) { AddEntry(pv_entries_.OnMark(mark)); }
  void OnRunstateInterval(const correlate::RunstateInterval& interval) {
    AddEntry(pv_entries_.OnRunstateInterval(interval));
  }
  // Adds what no record has bounded, after the last one.
  void Finish();

  // Returns `list` by domain and reason, those with most cycles first; `counts`, `cycles` and
  // `lengths` of them over time, and `length_steps`: of what the things of `lengths` are
  // (docs/schemas/page.schema.json). Errors: Internal when libdeflate fails.
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
  struct Exits {
    Key key;
    uint32_t number = 0;  // its place in exits_, and its key in counts_ and cycles_
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
  LengthOfStep& StepOf(Exits& exits, uint32_t step);
  void AddLength(Exits& exits, Tsc begin, Cycles length);
  void AddEntry(const std::optional<correlate::PvEntry>& entry);
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
