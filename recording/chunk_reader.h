// A reader of the chunks of samples/NAME.samples, in whatever state the writer left the file.
// sample_reader.h and process_reader.h read what is in the chunks.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "recording/sample_format.h"

namespace xenoscope::recording {

// The damage of a file: all that is in it beside good samples. Nothing is passed over without being
// counted.
struct SampleDamage {
  uint64_t torn_bytes = 0;       // bytes at the end: a chunk that was not written to its end
  uint64_t skipped_bytes = 0;    // bytes in the middle: no chunk, or a damaged one
  uint64_t skipped_samples = 0;  // samples in damaged chunks, by their headers
  uint64_t invalid_samples = 0;  // samples of whole chunks with a mode or event that does not exist
  uint64_t unknown_chunks = 0;   // chunks of kinds that a newer xenoscope writes
  std::optional<uint64_t> first_offset;  // offset of the first byte in error, in bytes

  [[nodiscard]] bool Any() const { return first_offset.has_value(); }
};

// A good chunk.
struct Chunk {
  ChunkHeader header;
  uint64_t at = 0;  // offset of the header in the file, in bytes
  Bytes entries;    // header.count * header.entry_size bytes, whose checksum is right
};

class ChunkReader {
 public:
  // `file` must outlive the reader. Errors (InvalidArgument): not a sample file, or one of a newer
  // major version.
  static absl::StatusOr<ChunkReader> Open(Bytes file);

  // Returns the next good chunk of a known kind, or nothing at the end. The header and the entries
  // have a checksum each, so a damaged chunk costs one search for the next header, and no byte is
  // looked at more than once.
  std::optional<Chunk> Next();

  // Skips the first `bytes` of the file, unless that is behind; goes on at the next chunk that
  // begins there. Skipped bytes are not damage.
  void SkipTo(uint64_t bytes);

  SampleDamage& damage() { return damage_; }
  [[nodiscard]] const SampleDamage& damage() const { return damage_; }
  void RecordDamage(uint64_t offset);
  // Returns the offset of the end of the last good chunk, or of what was skipped, in bytes.
  [[nodiscard]] uint64_t offset() const { return good_end_; }

 private:
  ChunkReader(Bytes file, uint64_t offset) : file_(file), offset_(offset), good_end_(offset) {}

  // Returns the header at `offset` if a whole one is there.
  [[nodiscard]] std::optional<ChunkHeader> HeaderAt(uint64_t offset) const;

  Bytes file_;
  uint64_t offset_ = 0;
  uint64_t good_end_ = 0;
  SampleDamage damage_;
};

}  // namespace xenoscope::recording
