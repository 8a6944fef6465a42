// A reader of what samples/NAME.samples says about processes: names, mappings, begins and ends.
// With these, addresses in user mode become functions.
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

// A part of a file in a process's memory: [begin, end) is the file from `offset` (bytes) on.
struct Mapping {
  Address begin = 0;
  Address end = 0;
  uint64_t offset = 0;
  Bytes build_id;  // build-id or content id of the file as it ran; empty when unknown
};

// One event of a process, or what it was like when recording began.
struct ProcessRecord {
  ProcessEntryType type = ProcessEntryType::kName;
  bool by_exec = false;
  bool at_start = false;
  DomainId domain;
  uint32_t pid = 0;
  uint32_t tid = 0;
  uint32_t parent = 0;
  DomainId behalf;    // the domain of a kBehalf record
  uint32_t file = 0;  // the number of a kMap's or kFileId's file (ProcessEntry::parent)
  Tsc when;
  Mapping map;  // the mapping of a kMap or kSpaceMap record; only the id of a kFileId record
  std::string_view text;  // name of the thread, or path of the mapped file
};

// Yields the records in the order of the file, which is that of time. Records point into the file.
class ProcessReader {
 public:
  // Errors: as those of SampleReader::Open.
  static absl::StatusOr<ProcessReader> Open(Bytes file);
  // Skips bytes as ChunkReader::SkipTo does; to be called before the first Next.
  void SkipTo(uint64_t bytes) { chunks_.SkipTo(bytes); }

  std::optional<ProcessRecord> Next();

  // Returns the offset where the chunk after the last whole one begins, or will begin.
  [[nodiscard]] uint64_t offset() const { return chunks_.offset(); }
  // Returns the number of whole records that are malformed or of a type that a newer xenoscope
  // writes.
  [[nodiscard]] uint64_t invalid() const { return invalid_; }

 private:
  explicit ProcessReader(ChunkReader chunks) : chunks_(chunks) {}

  // Returns the next record of the chunk, or nothing when it is not valid.
  std::optional<ProcessRecord> NextEntry();

  ChunkReader chunks_;
  DomainId domain_;
  Bytes entries_;  // entries of the current chunk that were not yielded yet
  uint64_t invalid_ = 0;
};

}  // namespace xenoscope::recording
