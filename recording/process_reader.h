// Reads from one samples/NAME.samples what it tells of processes: their names, what they map, when
// they begin and end. Addresses of their user mode become functions by it.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "base/mode.h"
#include "base/tsc.h"
#include "recording/chunk_reader.h"
#include "recording/sample_format.h"

namespace xenoscope::recording {

// A part of a file in a process's memory: [begin, end) is the file from `offset` on.
struct Mapping {
  Address begin = 0;
  Address end = 0;
  uint64_t offset = 0;
  Bytes build_id;  // of the file as it ran; empty when unknown
};

struct ProcessRecord {
  ProcessEntryType type = ProcessEntryType::kName;
  bool by_exec = false;
  bool at_start = false;
  DomainId domain;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t parent = 0;
  Tsc when;
  Mapping map;            // of kMap
  std::string_view text;  // the name, or the path of the file
};

// Yields them in the order of the file: the one in which they happened. What a record points to is
// in the file.
class ProcessReader {
 public:
  // As SampleReader::Open.
  static absl::StatusOr<ProcessReader> Open(Bytes file);
  // As ChunkReader::SkipTo, before the first Next.
  void SkipTo(uint64_t bytes) { chunks_.SkipTo(bytes); }

  std::optional<ProcessRecord> Next();

  // Where the chunk after the last whole one begins, or will.
  uint64_t offset() const { return chunks_.offset(); }
  // Whole, but not as they should be, or of a type that a newer xenoscope writes.
  uint64_t invalid() const { return invalid_; }

 private:
  explicit ProcessReader(ChunkReader chunks) : chunks_(chunks) {}

  // The next one of the chunk, or nothing when it is not valid.
  std::optional<ProcessRecord> NextEntry();

  ChunkReader chunks_;
  DomainId domain_;
  Bytes entries_;  // of the chunk, those not yet yielded
  uint64_t invalid_ = 0;
};

}  // namespace xenoscope::recording
