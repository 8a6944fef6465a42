// A reader of one samples/NAME.samples, sample by sample, in whatever state the writer left the
// file.
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

// Yields samples in the order of the file: drain by drain, within a drain buffer by buffer, within
// a buffer in the order of the ring. So the samples of one vCPU come in the order in which Xen took
// them. Memory does not grow with the file.
//
//   while (const Sample* sample = reader.Next()) ...
class SampleReader {
 public:
  // `file` must outlive the reader and its samples. `events` is the recording's number of events.
  // Errors (InvalidArgument): not a sample file, or one of a newer major version.
  static absl::StatusOr<SampleReader> Open(Bytes file, size_t events);
  // Skips bytes as ChunkReader::SkipTo does; to be called before the first Next.
  void SkipTo(uint64_t bytes) { chunks_.SkipTo(bytes); }

  // Returns the next sample, valid until the next call; null at the end.
  const Sample* Next();

  // Returns the range of time of the next samples, of any event: those of one drain of one buffer
  // share it. For a survey, instead of Next; nothing at the end.
  std::optional<TscRange> NextBracket();

  // Returns where the stack of the last sample is; nothing: it has none, as of a thread without a
  // user mode, or in a recording without stacks.
  [[nodiscard]] const std::optional<StackEntry>& stack() const { return stack_; }
  // Returns the chunk with the stacks of the last sample's chunk; null: it is not there.
  [[nodiscard]] const Chunk* stacks() const {
    return stacks_ && stacks_->header.entries_crc == chunk_.vcpu ? &*stacks_ : nullptr;
  }

  // Returns the damage, which is complete once Next has returned null.
  [[nodiscard]] const SampleDamage& damage() const { return chunks_.damage(); }
  // Returns the offset before which all bytes have been read, for progress.
  [[nodiscard]] uint64_t offset() const { return chunks_.offset(); }

 private:
  SampleReader(ChunkReader chunks, size_t events) : chunks_(chunks), events_(events) {}

  bool NextChunk();
  // Reads the next entry into sample_; false: the entry is not valid.
  bool NextEntry();
  bool NextTimed();
  void SkipInvalid(uint64_t samples, size_t bytes);
  void MarkRestInvalid();

  ChunkReader chunks_;
  size_t events_ = 0;
  ChunkHeader chunk_;
  Bytes entries_;                    // entries of the current chunk that were not yielded yet
  uint32_t items_left_ = 0;          // items left in a chunk that holds items
  std::optional<Chunk> stacks_;      // the last chunk of stacks
  std::optional<StackEntry> stack_;  // of the last sample
  Sample sample_;  // the last sample; fields that a chunk's samples share stay set
};

}  // namespace xenoscope::recording
