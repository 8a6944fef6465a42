// Finds the chunks of a samples/NAME.samples, whatever state it was left in; what is in them is
// sample_reader.h's and process_reader.h's.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "base/bytes.h"
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

struct Chunk {
  ChunkHeader header;
  Bytes entries;  // header.count * header.entry_size bytes, with the right checksum
};

class ChunkReader {
 public:
  // `file` outlives the reader. Errors (InvalidArgument): not a sample file, or one of a newer
  // major version.
  static absl::StatusOr<ChunkReader> Open(Bytes file);

  // The next good chunk of a known kind, or nothing at the end. A header and the entries have
  // checksums of their own, so that a damaged chunk costs one search for the next header, and never
  // more than one look at each byte.
  std::optional<Chunk> Next();

  // Goes on behind the first `bytes` of the file, if it is not there yet, at the next chunk that
  // begins there; what comes before that is not damage.
  void SkipTo(uint64_t bytes);

  SampleDamage& damage() { return damage_; }
  const SampleDamage& damage() const { return damage_; }
  void RecordDamage(uint64_t offset);
  // Of the end of the last good chunk.
  uint64_t offset() const { return good_end_; }

 private:
  ChunkReader(Bytes file, uint64_t offset) : file_(file), offset_(offset), good_end_(offset) {}

  // The header at `offset` when one is whole there.
  std::optional<ChunkHeader> HeaderAt(uint64_t offset) const;

  Bytes file_;
  uint64_t offset_ = 0;
  uint64_t good_end_ = 0;
  SampleDamage damage_;
};

}  // namespace xenoscope::recording
