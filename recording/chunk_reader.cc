#include "recording/chunk_reader.h"

#include <algorithm>
#include <cstddef>

#include "base/crc.h"
#include "base/error.h"

namespace xenoscope::recording {
namespace {

bool IsKnown(const ChunkHeader& header) {
  switch (header.kind) {
    case ChunkKind::kBracketed:
    case ChunkKind::kStopped:
      return header.entry_size >= sizeof(Entry);
    case ChunkKind::kTimed:
    case ChunkKind::kProcesses:
    case ChunkKind::kStoppedWithCallers:
      return header.entry_size == kWordSize;
    case ChunkKind::kTracePages:
      return header.entry_size > 0;
    case ChunkKind::kClockAnswers:
      return header.entry_size >= sizeof(ClockAnswer);
    case ChunkKind::kCpuTimes:
      return header.entry_size >= sizeof(CpuTimesEntry);
    case ChunkKind::kTraceFormats:
    case ChunkKind::kStacks:
    case ChunkKind::kPerfMaps:
      return header.entry_size == 1;
  }
  return false;
}

uint64_t SamplesIn(const ChunkHeader& header) {
  if (!HoldsSamples(header.kind)) return 0;
  return HoldsItems(header.kind) ? header.items : header.count;
}

}  // namespace

absl::StatusOr<ChunkReader> ChunkReader::Open(Bytes file) {
  const auto header = Load<FileHeader>(file, 0);
  if (!header || header->magic != kSampleMagic) {
    return InvalidError("not a file of samples: it does not begin with XENOSMPL");
  }
  if (header->major != FileHeader{}.major) {
    return InvalidError("samples of format {}.{}, and this xenoscope reads {}.x: use a newer one",
                        header->major, header->minor, FileHeader{}.major);
  }
  if (header->header_size < sizeof(FileHeader) || header->header_size > file.size()) {
    return InvalidError("the header of the samples says it has {} bytes", header->header_size);
  }
  return ChunkReader(file, header->header_size);
}

std::optional<Chunk> ChunkReader::Next() {
  while (offset_ < file_.size()) {
    const std::optional<ChunkHeader> header = HeaderAt(offset_);
    if (!header) {
      const uint64_t from = offset_;
      while (offset_ < file_.size() && !HeaderAt(offset_)) ++offset_;
      const uint64_t passed = offset_ - from;
      (offset_ == file_.size() ? damage_.torn_bytes : damage_.skipped_bytes) += passed;
      RecordDamage(from);
      continue;
    }
    const uint64_t begin = offset_ + sizeof(ChunkHeader);
    const uint64_t length = uint64_t{header->count} * header->entry_size;
    const std::optional<Bytes> entries = Slice(file_, begin, length);
    if (!entries) {
      damage_.torn_bytes += file_.size() - offset_;
      damage_.skipped_samples += SamplesIn(*header);
      RecordDamage(offset_);
      offset_ = file_.size();
      return std::nullopt;
    }
    const uint64_t at = offset_;
    offset_ = begin + length;
    if (Crc32(*entries) != header->entries_crc) {
      damage_.skipped_bytes += offset_ - at;
      damage_.skipped_samples += SamplesIn(*header);
      RecordDamage(at);
      continue;
    }
    if (!IsKnown(*header)) {
      ++damage_.unknown_chunks;
      RecordDamage(at);
      continue;
    }
    good_end_ = offset_;
    return Chunk{*header, at, *entries};
  }
  return std::nullopt;
}

void ChunkReader::SkipTo(uint64_t bytes) {
  if (bytes <= offset_) return;
  offset_ = bytes;
  good_end_ = std::min<uint64_t>(bytes, file_.size());
  while (offset_ < file_.size() && !HeaderAt(offset_)) ++offset_;
}

std::optional<ChunkHeader> ChunkReader::HeaderAt(uint64_t offset) const {
  const auto magic = Load<uint32_t>(file_, offset);
  if (magic != kChunkMagic) return std::nullopt;
  const auto bytes = Slice(file_, offset, sizeof(ChunkHeader));
  if (!bytes) return std::nullopt;
  const auto header = LoadUnchecked<ChunkHeader>(bytes->data());
  if (Crc32(bytes->first(offsetof(ChunkHeader, header_crc))) != header.header_crc) {
    return std::nullopt;
  }
  return header;
}

void ChunkReader::RecordDamage(uint64_t offset) {
  if (!damage_.first_offset) damage_.first_offset = offset;
}

}  // namespace xenoscope::recording
