#include "recording/sample_reader.h"

#include <cstddef>

#include "base/error.h"
#include "recording/crc.h"

namespace xenoscope::recording {

absl::StatusOr<SampleReader> SampleReader::Open(Bytes file, size_t events) {
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
  return SampleReader(file, header->header_size, events);
}

std::optional<Sample> SampleReader::Next() {
  while (true) {
    while (entries_.empty()) {
      if (!NextChunk()) return std::nullopt;
    }
    const auto entry = LoadUnchecked<Entry>(entries_.data());
    entries_ = entries_.subspan(chunk_.entry_size);
    if (entry.mode > static_cast<uint8_t>(Mode::kXen) || entry.event >= events_) {
      ++damage_.invalid_samples;
      Damaged(offset_ - entries_.size() - chunk_.entry_size);
      continue;
    }
    Sample sample;
    sample.vcpu = {DomainId{chunk_.domain}, VcpuId{chunk_.vcpu}};
    sample.mode = static_cast<Mode>(entry.mode);
    sample.address = entry.address;
    sample.event = entry.event;
    sample.when = {Tsc{chunk_.previous_before}, Tsc{chunk_.after}};
    sample.stopped = chunk_.kind == ChunkKind::kStopped;
    return sample;
  }
}

// Makes the next good chunk the current one. A header and the entries have checksums of their own,
// so that a damaged chunk costs one search for the next header, and never more than one look at
// each byte.
bool SampleReader::NextChunk() {
  while (offset_ < file_.size()) {
    const std::optional<ChunkHeader> header = HeaderAt(offset_);
    if (!header) {
      const uint64_t from = offset_;
      while (offset_ < file_.size() && !HeaderAt(offset_)) ++offset_;
      const uint64_t passed = offset_ - from;
      (offset_ == file_.size() ? damage_.torn_bytes : damage_.skipped_bytes) += passed;
      Damaged(from);
      continue;
    }
    const uint64_t begin = offset_ + sizeof(ChunkHeader);
    const uint64_t length = uint64_t{header->count} * header->entry_size;
    const std::optional<Bytes> entries = Slice(file_, begin, length);
    if (!entries) {
      damage_.torn_bytes += file_.size() - offset_;
      damage_.skipped_samples += header->count;
      Damaged(offset_);
      offset_ = file_.size();
      return false;
    }
    const uint64_t at = offset_;
    offset_ = begin + length;
    if (Crc32(*entries) != header->entries_crc) {
      damage_.skipped_bytes += offset_ - at;
      damage_.skipped_samples += header->count;
      Damaged(at);
      continue;
    }
    const bool known = header->kind == ChunkKind::kBracketed || header->kind == ChunkKind::kStopped;
    if (!known || header->entry_size < sizeof(Entry)) {
      ++damage_.unknown_chunks;
      Damaged(at);
      continue;
    }
    chunk_ = *header;
    entries_ = *entries;
    return true;
  }
  return false;
}

std::optional<ChunkHeader> SampleReader::HeaderAt(uint64_t offset) const {
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

void SampleReader::Damaged(uint64_t offset) {
  if (!damage_.first_offset) damage_.first_offset = offset;
}

}  // namespace xenoscope::recording
