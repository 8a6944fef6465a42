// Reads one samples/NAME.samples, sample by sample, whatever state it was left in.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/tsc.h"
#include "recording/chunk_reader.h"
#include "recording/sample.h"
#include "recording/sample_format.h"

namespace xenoscope::recording {

// Yields samples in the order of the file: drain by drain, in each drain buffer by buffer, in each
// buffer in the order of the ring. The samples of one vCPU are so in the order in which Xen took
// them. Memory does not grow with the file.
//
//   while (const Sample* sample = reader.Next()) ...
class SampleReader {
 public:
  // `file` outlives the reader and its samples. `events` is the number of events of the recording.
  // Errors (InvalidArgument): not a sample file, or one of a newer major version.
  static absl::StatusOr<SampleReader> Open(Bytes file, size_t events);
  // As ChunkReader::SkipTo, before the first Next.
  void SkipTo(uint64_t bytes) { chunks_.SkipTo(bytes); }

  // The next sample, which is there until the next call; null at the end.
  const Sample* Next();

  // When the next samples were taken, of whichever event: those of a drain of one buffer together.
  // Instead of Next, for a survey; nothing at the end.
  std::optional<TscRange> NextBracket();

  // Complete once Next has returned nothing.
  const SampleDamage& damage() const { return chunks_.damage(); }
  // The bytes before this offset have been read; for progress.
  uint64_t offset() const { return chunks_.offset(); }

 private:
  SampleReader(ChunkReader chunks, size_t events) : chunks_(chunks), events_(events) {}

  bool NextChunk();
  // Whether the next entry is good; sample_ is then what it says.
  bool NextEntry();
  bool NextTimed();
  void SkipInvalid(uint64_t samples, size_t bytes);
  void MarkRestInvalid();

  ChunkReader chunks_;
  size_t events_ = 0;
  ChunkHeader chunk_;
  Bytes entries_;            // of the chunk, those not yet yielded
  uint32_t items_left_ = 0;  // of a chunk that holds items
  Sample sample_;            // the last; of other chunks, with what all of their samples have
};

}  // namespace xenoscope::recording
