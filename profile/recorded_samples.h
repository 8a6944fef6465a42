// The samples of a recording, in the form that placing needs.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "base/tsc.h"
#include "correlate/placing/placed_sample.h"
#include "profile/recorded_processes.h"
#include "recording/recording.h"
#include "recording/sample.h"

namespace xenoscope::profile {

// A choice of a recording's samples.
struct SampleSelection {
  std::vector<uint16_t> events = {0};  // numbers of the events of the samples
  // The events whose samples come too, to be compared with these (profile/event_comparison.h).
  std::vector<std::vector<uint16_t>> beside{};
  // The number of bytes to skip at the beginning of each source's file, by source. Empty: none.
  std::vector<uint64_t> skipped_bytes{};
};

// Opens the samples of the source with this number, behind the skipped bytes. Errors: those of
// Recording::OpenSamples.
absl::StatusOr<recording::SampleStream> OpenSelected(const recording::Recording& recording,
                                                     const SampleSelection& selection,
                                                     size_t source);

// When samples were taken.
struct BracketSummary {
  TscRange all{Tsc{std::numeric_limits<uint64_t>::max()}, Tsc{0}};  // holds all brackets
  Cycles longest = 0;                                               // the length of the longest one

  void Add(TscRange when);
};

// Returns the summary of all brackets, of samples of any event. Reads all samples. Errors: those of
// OpenSelected.
absl::StatusOr<BracketSummary> SummariseBrackets(const recording::Recording& recording,
                                                 const SampleSelection& selection);

// The samples of some events of all sources, merged in the order of the ends of their brackets.
class RecordedSamples final : public correlate::SampleSource {
 public:
  // `processes`, which outlives the result, gives samples the number of their memory; null: they
  // have none. Errors: those of Recording::OpenSamples.
  static absl::StatusOr<RecordedSamples> Open(const recording::Recording& recording,
                                              const SampleSelection& selection,
                                              const RecordedProcesses* processes);

  const recording::Sample* Next() override;

  // Returns the number of samples in damaged parts; complete after the last sample.
  uint64_t Damaged() const;
  // Returns the number of bytes of each source's file that have been read, by source. The samples
  // of a file that grows go on there (SampleSelection::skipped_bytes); complete after the last
  // sample.
  std::vector<uint64_t> Offsets() const;

 private:
  // Which samples of a source a stream has: those of Xen's vPMU are in order only with others of
  // known, or of unknown, domain.
  enum class Part : uint8_t { kAll, kKnownDomain, kUnknownDomain };
  struct Stream {
    recording::SampleStream samples;
    Part part = Part::kAll;
    bool by_vpmu = false;  // Xen's vPMU took the samples
    std::optional<recording::Sample> next{};
  };

  RecordedSamples(const SampleSelection& selection, const RecordedProcesses* processes);

  void Advance(Stream& stream) const;
  // Returns the next sample of the stream's part and of the events; null at the end.
  const recording::Sample* NextWanted(Stream& stream) const;

  std::bitset<recording::kMaxRecordingEvents> events_;
  const RecordedProcesses* processes_;
  std::vector<Stream> streams_;
  Stream* given_ = nullptr;  // the one in streams_ whose sample Next() returned last
};

}  // namespace xenoscope::profile
