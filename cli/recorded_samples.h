// The samples of a recording, as placing takes them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "correlate/placing.h"
#include "recording/recording.h"
#include "recording/sample.h"

namespace xenoscope::cli {

// The samples of one event of all sources, merged in the order of the ends of their brackets.
class RecordedSamples final : public correlate::SampleSource {
 public:
  // Errors: those of Recording::OpenSamples.
  static absl::StatusOr<RecordedSamples> Open(const recording::Recording& recording,
                                              uint16_t event);

  std::optional<recording::Sample> Next() override;

  // Samples in damaged parts; complete after the last sample.
  uint64_t Damaged() const;

 private:
  struct Stream {
    recording::SampleStream samples;
    std::optional<recording::Sample> next;
  };

  explicit RecordedSamples(uint16_t event) : event_(event) {}

  void Advance(Stream& stream) const;

  uint16_t event_;
  std::vector<Stream> streams_;
};

}  // namespace xenoscope::cli
