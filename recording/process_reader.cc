#include "recording/process_reader.h"

#include <cstddef>

#include "base/error.h"

namespace xenoscope::recording {

absl::StatusOr<ProcessReader> ProcessReader::Open(Bytes file) {
  XENOSCOPE_ASSIGN_OR_RETURN(ChunkReader chunks, ChunkReader::Open(file));
  return ProcessReader(chunks);
}

std::optional<ProcessRecord> ProcessReader::Next() {
  while (true) {
    while (entries_.empty()) {
      const std::optional<Chunk> chunk = chunks_.Next();
      if (!chunk) return std::nullopt;
      if (chunk->header.kind != ChunkKind::kProcesses) continue;
      domain_ = DomainId{chunk->header.domain};
      entries_ = chunk->entries;
    }
    if (const std::optional<ProcessRecord> record = NextEntry()) return record;
    ++invalid_;
  }
}

std::optional<ProcessRecord> ProcessReader::NextEntry() {
  const auto entry = Load<ProcessEntry>(entries_, 0);
  if (!entry || entry->size < sizeof(ProcessEntry) || entry->size > entries_.size()) {
    entries_ = {};  // where the next one begins is not known
    return std::nullopt;
  }
  const Bytes all = entries_.first(entry->size);
  entries_ = entries_.subspan(entry->size);
  ProcessRecord record;
  record.type = static_cast<ProcessEntryType>(entry->type);
  if (record.type < ProcessEntryType::kName || record.type > ProcessEntryType::kSpaceMap) {
    return std::nullopt;
  }
  record.by_exec = (entry->flags & kByExec) != 0;
  record.at_start = (entry->flags & kAtStart) != 0;
  record.domain = domain_;
  record.pid = entry->pid;
  record.tid = entry->tid;
  record.parent = entry->parent;
  if (record.type == ProcessEntryType::kBehalf) {
    // Processes of dom0 alone work on behalf of others; guests cannot say that theirs do.
    if (domain_ != kDom0 || entry->parent >= kFirstReservedDomain.value) return std::nullopt;
    record.behalf = DomainId{static_cast<uint16_t>(entry->parent)};
  }
  record.when = Tsc{entry->when};
  size_t text_at = sizeof *entry;
  const bool is_map =
      record.type == ProcessEntryType::kMap || record.type == ProcessEntryType::kSpaceMap;
  if (is_map || record.type == ProcessEntryType::kFileId) {
    const auto map = Load<MapEntry>(all, text_at);
    if (!map || (map->length == 0) == is_map || map->address + map->length < map->address) {
      return std::nullopt;
    }
    record.file = entry->parent;
    const std::optional<Bytes> build_id =
        Slice(all, text_at + offsetof(MapEntry, build_id), map->build_id_size);
    if (!build_id || map->build_id_size > map->build_id.size()) return std::nullopt;
    record.map = {map->address, map->address + map->length, map->offset, *build_id};
    text_at += sizeof *map;
  }
  const std::optional<Bytes> text = Slice(all, text_at, entry->text_size);
  if (!text) return std::nullopt;
  record.text = AsText(*text);
  return record;
}

}  // namespace xenoscope::recording
