// Reads one samples/NAME.samples, sample by sample, whatever state it was left in.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/tsc.h"
#include "recording/sample.h"
#include "recording/sample_format.h"

namespace xenoscope::recording {

// What was found in the file beside good samples. Nothing is passed over without being counted.
struct SampleDamage {
  uint64_t torn_bytes = 0;               // at the end: a chunk that was not written to its end
  uint64_t skipped_bytes = 0;            // in the middle: no chunk, or a damaged one
  uint64_t skipped_samples = 0;          // samples that damaged chunks had said they hold
  uint64_t invalid_samples = 0;          // whole, but with a mode or event that does not exist
  uint64_t unknown_chunks = 0;           // of kinds that a newer xenoscope writes
  std::optional<uint64_t> first_offset;  // of the first byte that was not as it should be

  bool Any() const { return first_offset.has_value(); }
};

// Yields samples in the order of the file: drain by drain, in each drain buffer by buffer, in each
// buffer in the order of the ring. The samples of one vCPU are so in the order in which Xen took
// them. Memory does not grow with the file.
//
//   while (std::optional<Sample> sample = reader.Next()) ...
class SampleReader {
 public:
  // `file` outlives the reader. `events` is the number of events of the recording. Errors
  // (InvalidArgument): not a sample file, or one of a newer major version.
  static absl::StatusOr<SampleReader> Open(Bytes file, size_t events);

  // The next sample, or nothing at the end.
  std::optional<Sample> Next();

  // Complete once Next has returned nothing.
  const SampleDamage& damage() const { return damage_; }
  // The bytes before this offset have been read; for progress.
  uint64_t offset() const { return offset_; }

 private:
  SampleReader(Bytes file, uint64_t offset, size_t events)
      : file_(file), offset_(offset), events_(events) {}

  bool NextChunk();
  // The header at `offset` when one is whole there.
  std::optional<ChunkHeader> HeaderAt(uint64_t offset) const;
  void Damaged(uint64_t offset);

  Bytes file_;
  uint64_t offset_ = 0;  // of the next chunk
  size_t events_ = 0;
  ChunkHeader chunk_;
  Bytes entries_;  // of the chunk, those not yet yielded
  SampleDamage damage_;
};

}  // namespace xenoscope::recording
