// The samples of a recording, as placing takes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "correlate/placing/placed_sample.h"
#include "profile/recorded_processes.h"
#include "recording/recording.h"
#include "recording/sample.h"

namespace xenoscope::profile {

// Which samples of a recording.
struct SampleSelection {
  uint16_t event = 0;
  // By source: how many bytes at the beginning of its file are of no interest. Empty: none.
  std::vector<uint64_t> skipped_bytes{};
};

// The samples of the recording's source of that number, without what is passed over. Errors: those
// of Recording::OpenSamples.
absl::StatusOr<recording::SampleStream> OpenSelected(const recording::Recording& recording,
                                                     const SampleSelection& selection,
                                                     size_t source);

// The samples of one event of all sources, merged in the order of the ends of their brackets.
class RecordedSamples final : public correlate::SampleSource {
 public:
  // `processes`, of which samples get their memory's number, outlives them; null: they get none.
  // Errors: those of Recording::OpenSamples.
  static absl::StatusOr<RecordedSamples> Open(const recording::Recording& recording,
                                              const SampleSelection& selection,
                                              const RecordedProcesses* processes);

  const recording::Sample* Next() override;

  // Samples in damaged parts; complete after the last sample.
  uint64_t Damaged() const;

 private:
  struct Stream {
    recording::SampleStream samples;
    std::optional<recording::Sample> next{};
  };

  RecordedSamples(uint16_t event, const RecordedProcesses* processes)
      : event_(event), processes_(processes) {}

  void Advance(Stream& stream) const;

  uint16_t event_;
  const RecordedProcesses* processes_;
  std::vector<Stream> streams_;
  Stream* given_ = nullptr;  // of streams_: whose next was the last
};

}  // namespace xenoscope::profile
