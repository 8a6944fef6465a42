// `xenoscope record --continuous`: slices without end, of which the last ones are kept.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "cli/options.h"
#include "recording/slice_ring.h"
#include "sampler/recorder.h"

namespace xenoscope::cli {

struct ContinuousOptions {
  bool continuous = false;
  double slice_s = 60;
  std::string keep = "60";
  std::string push;    // the URL of a store; empty: none
  std::string budget;  // sampler::ParseBudget; empty: no limit
  // The age from which on pushed slices are joined; 0: never. If it is not set, JoinAfterNs says
  // it.
  std::optional<int64_t> join_after_ns;

  [[nodiscard]] int64_t JoinAfterNs() const;
};

// Adds them to `record`, in a group of their own. `options` must outlive it.
void AddContinuousOptions(Command command, ContinuousOptions& options);
// Throws a usage error where they contradict each other, or the URL is none of a store.
void CheckContinuousOptions(const ContinuousOptions& options);

// Pushes a recording to the store `url` by `xenoscope push`, which restricts itself: what is
// recorded is not trusted. Errors: that it could not be pushed, and how to do it later.
absl::Status PushRecording(const std::string& recording, const std::string& url);

// Records slices into the ring `request.output` until a signal comes. Prints a line for each slice
// to stderr. Errors: those of the first slice, if nothing of it can be recorded; of the ring's
// directory.
absl::Status RecordContinuously(const sampler::RecordRequest& request,
                                const ContinuousOptions& options);

}  // namespace xenoscope::cli
