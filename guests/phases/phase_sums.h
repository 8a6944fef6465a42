// Sums up what the vCPUs of a domain do in each phase, by Xen's trace.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/timeline.h"
#include "guests/phases/phase_times.h"

namespace xenoscope::guests {

// From `begin` to the next cell: the phase, something within it that has times of its own, such as
// an initcall, and whose times count.
struct PhaseCell {
  static constexpr size_t kNoPart = ~size_t{0};

  Tsc begin;
  size_t phase = 0;
  size_t part = kNoPart;
  std::optional<VcpuId> vcpu{};  // nothing: all vCPUs count
};

class PhaseSums : public correlate::TimelineObserver {
 public:
  // `cells` are in the order of time, at least one; the last one ends at `end`.
  PhaseSums(DomainId domain, std::vector<PhaseCell> cells, Tsc end, size_t phases, size_t parts);

  [[nodiscard]] bool WantsMarks() const override { return false; }
  // O(cells that it spans + log cells).
  void OnSegment(const correlate::Segment& segment) override;
  void OnRunstateInterval(const correlate::RunstateInterval& interval) override;

  // Return the times of a phase, or of a part, up to `length` cycles: what no record was about is
  // untraced. `length` is that of the phase for each vCPU that counts. O(reasons log reasons).
  [[nodiscard]] PhaseTimes OfPhase(size_t phase, Cycles length) const;
  [[nodiscard]] PhaseTimes OfPart(size_t part, Cycles length) const;
  // Returns the vCPUs of which the trace has something in the cells.
  [[nodiscard]] std::vector<VcpuId> Vcpus() const;

 protected:
  [[nodiscard]] DomainId domain() const { return domain_; }
  [[nodiscard]] const std::vector<PhaseCell>& cells() const { return cells_; }
  [[nodiscard]] Tsc end() const { return end_; }

 private:
  // Sums of one phase or part in the making.
  struct Sums {
    std::array<Cycles, kPhaseStates> states{};
    absl::flat_hash_map<std::pair<bool, uint32_t>, PhaseExit> exits;  // nested, reason
  };

  // Returns when what is summed begins at the earliest.
  [[nodiscard]] virtual Tsc Begin() const { return cells_.front().begin; }
  // Returns the phase of a cell as it is known so far.
  [[nodiscard]] virtual size_t PhaseOf(const PhaseCell& cell) const { return cell.phase; }

  void Add(VcpuId vcpu, TscRange range, PhaseState state, const correlate::Segment* exit);
  static void AddTo(Sums& sums, PhaseState state, Cycles time, const correlate::Segment* exit,
                    bool begins);
  static PhaseTimes TimesOf(const Sums& sums, Cycles length);

  DomainId domain_;
  Tsc end_;
  std::vector<PhaseCell> cells_;
  std::vector<Sums> phases_;
  std::vector<Sums> parts_;
  std::vector<std::optional<Tsc>> summed_;  // by vCPU: up to here
};

}  // namespace xenoscope::guests
