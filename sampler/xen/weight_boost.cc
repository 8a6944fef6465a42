#include "sampler/xen/weight_boost.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "sampler/small_file.h"

namespace xenoscope::sampler {
namespace {

constexpr std::array kSchedulers = {
    std::pair{WeightScheduler::kCredit2, std::string_view("credit2")},
    std::pair{WeightScheduler::kCredit, std::string_view("credit")}};

std::string_view NameOf(WeightScheduler scheduler) {
  return scheduler == WeightScheduler::kCredit2 ? "credit2" : "credit";
}

}  // namespace

WeightBoost::WeightBoost(std::unique_ptr<WeightCalls> calls, std::string state_file, State state)
    : calls_(std::move(calls)), state_file_(std::move(state_file)), state_(state) {}

WeightBoost::~WeightBoost() { Restore().IgnoreError(); }

absl::StatusOr<std::unique_ptr<WeightBoost>> WeightBoost::Raise(std::unique_ptr<WeightCalls> calls,
                                                                const std::string& state_file) {
  for (const auto& [scheduler, name] : kSchedulers) {
    State state{.scheduler = scheduler};
    const int error = calls->Get(scheduler, kDom0, state.before);
    if (error == -EINVAL) continue;
    if (error != 0) return ErrnoError(-error, "cannot read dom0's weight");
    constexpr uint32_t kMaxWeight = std::numeric_limits<uint16_t>::max();
    state.raised = static_cast<uint16_t>(std::min(uint32_t{state.before} * kFactor, kMaxWeight));
    // First the file: a kill between the two leaves nothing that is not known.
    XENOSCOPE_RETURN_IF_ERROR(WriteState(state_file, state));
    if (const int failed = calls->Set(scheduler, kDom0, state.raised); failed != 0) {
      unlink(state_file.c_str());
      return ErrnoError(-failed, "cannot raise dom0's weight");
    }
    // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
    return std::unique_ptr<WeightBoost>(new WeightBoost(std::move(calls), state_file, state));
  }
  return PreconditionError(
      "dom0's scheduler has no weights (it is neither credit2 nor credit): record without --boost, "
      "and give dom0 a pCPU of its own (xl vcpu-pin)");
}

absl::Status WeightBoost::Restore() {
  if (!std::exchange(is_raised_, false)) return absl::OkStatus();
  XENOSCOPE_RETURN_IF_ERROR(RestoreFrom(*calls_, state_).status());
  unlink(state_file_.c_str());
  return absl::OkStatus();
}

absl::StatusOr<std::optional<std::string>> WeightBoost::RestoreStale(
    WeightCalls& calls, const std::string& state_file) {
  if (access(state_file.c_str(), F_OK) != 0) return std::nullopt;
  const std::optional<State> state = ReadState(state_file);
  if (!state) {
    unlink(state_file.c_str());
    return fmt::format(
        "a killed recording had raised dom0's weight, and {} does not say from what: set it with "
        "xl sched-credit2 -d 0 -w 256",
        state_file);
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const bool restored, RestoreFrom(calls, *state));
  unlink(state_file.c_str());
  if (!restored) return std::nullopt;
  return fmt::format("restored dom0's weight of {}, which a killed recording had raised to {}",
                     state->before, state->raised);
}

absl::StatusOr<bool> WeightBoost::RestoreFrom(WeightCalls& calls, const State& state) {
  uint16_t now = 0;
  int error = calls.Get(state.scheduler, kDom0, now);
  // An administrator who changed the weight, or the scheduler, has the last word.
  if (error == -EINVAL || (error == 0 && now != state.raised)) return false;
  if (error == 0) error = calls.Set(state.scheduler, kDom0, state.before);
  if (error == 0) return true;
  return ErrnoError(-error, "cannot restore dom0's weight: set it with xl sched-{} -d 0 -w {}",
                    NameOf(state.scheduler), state.before);
}

// The file has one line: the scheduler, the weight before, the raised weight.
std::optional<WeightBoost::State> WeightBoost::ReadState(const std::string& state_file) {
  const std::optional<std::string> text = ReadSmallFile(state_file);
  const std::vector<std::string> words = absl::StrSplit(text.value_or(""), ' ', absl::SkipEmpty());
  if (words.size() != 3) return std::nullopt;
  uint32_t before = 0;
  uint32_t raised = 0;
  constexpr uint32_t kMaxWeight = std::numeric_limits<uint16_t>::max();
  if (!absl::SimpleAtoi(words[1], &before) || !absl::SimpleAtoi(words[2], &raised) || before == 0 ||
      before > kMaxWeight || raised > kMaxWeight) {
    return std::nullopt;
  }
  for (const auto& [scheduler, name] : kSchedulers) {
    if (name != words[0]) continue;
    return State{scheduler, static_cast<uint16_t>(before), static_cast<uint16_t>(raised)};
  }
  return std::nullopt;
}

absl::Status WeightBoost::WriteState(const std::string& state_file, const State& state) {
  constexpr mode_t kMode = 0600;
  return WriteSmallFile(
      state_file, fmt::format("{} {} {}\n", NameOf(state.scheduler), state.before, state.raised),
      kMode);
}

absl::StatusOr<std::optional<std::string>> RestoreStaleWeight() {
  if (access(WeightBoost::kStateFile, F_OK) != 0) return std::nullopt;
  XENOSCOPE_ASSIGN_OR_RETURN(const std::unique_ptr<WeightCalls> calls, OpenWeightCalls());
  return WeightBoost::RestoreStale(*calls, WeightBoost::kStateFile);
}

}  // namespace xenoscope::sampler
