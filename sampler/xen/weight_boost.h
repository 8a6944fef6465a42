// Raises dom0's weight for the length of a recording, so that dom0 gets a pCPU when it has to drain
// buffers while guests keep all pCPUs busy.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sampler/xen/weight_calls.h"

namespace xenoscope::sampler {

// A raised weight, until it is restored. A file has the old weight meanwhile: it survives a kill,
// and the next recorder, or `doctor`, restores the weight from it. One recording at a time
// (SessionLock).
class WeightBoost {
 public:
  // The file, in a directory that only root writes to and that a reboot empties, as it does Xen's
  // weights.
  static constexpr const char* kStateFile = "/run/xenoscope.weight";
  // With 8 times the default weight (256), dom0 wins against that many guests' vCPUs, and the
  // credits of guests still last for timeslices: credit2 charges each vCPU by the largest weight in
  // its run queue.
  static constexpr uint16_t kFactor = 8;

  // Raises dom0's weight. Errors: dom0's scheduler has no weights (FailedPrecondition, with what to
  // do); the file cannot be written; the call's error.
  static absl::StatusOr<std::unique_ptr<WeightBoost>> Raise(std::unique_ptr<WeightCalls> calls,
                                                            const std::string& state_file);
  // Restores the weight that a killed recorder raised, if the file is there and the weight is still
  // the one that it set; removes the file. Returns what it did, for the user; nothing if there was
  // nothing to do. Errors: the call's; the file then stays.
  static absl::StatusOr<std::optional<std::string>> RestoreStale(WeightCalls& calls,
                                                                 const std::string& state_file);

  WeightBoost(const WeightBoost&) = delete;
  WeightBoost& operator=(const WeightBoost&) = delete;
  // Restores it, unless Restore was called.
  ~WeightBoost();

  // Restores the weight, unless something else has changed it meanwhile, and removes the file.
  absl::Status Restore();

  [[nodiscard]] uint16_t before() const { return state_.before; }
  [[nodiscard]] uint16_t raised() const { return state_.raised; }

 private:
  struct State {
    WeightScheduler scheduler = WeightScheduler::kCredit2;
    uint16_t before = 0;
    uint16_t raised = 0;
  };
  WeightBoost(std::unique_ptr<WeightCalls> calls, std::string state_file, State state);

  static std::optional<State> ReadState(const std::string& state_file);
  static absl::Status WriteState(const std::string& state_file, const State& state);
  // Returns whether it changed the weight.
  static absl::StatusOr<bool> RestoreFrom(WeightCalls& calls, const State& state);

  std::unique_ptr<WeightCalls> calls_;
  std::string state_file_;
  State state_;
  bool is_raised_ = true;
};

// Restores on this host what a killed recorder raised: RestoreStale with real Xen. The caller holds
// the SessionLock. Does not open Xen where there is no file.
absl::StatusOr<std::optional<std::string>> RestoreStaleWeight();

}  // namespace xenoscope::sampler
