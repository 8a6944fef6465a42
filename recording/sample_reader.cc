#include "recording/sample_reader.h"

#include <algorithm>

#include "base/error.h"

namespace xenoscope::recording {

absl::StatusOr<SampleReader> SampleReader::Open(Bytes file, size_t events) {
  XENOSCOPE_ASSIGN_OR_RETURN(ChunkReader chunks, ChunkReader::Open(file));
  return SampleReader(chunks, events);
}

const Sample* SampleReader::Next() {
  while (!entries_.empty() || NextChunk()) {
    if (entries_.empty()) continue;
    if (HoldsItems(chunk_.kind) ? NextTimed() : NextEntry()) return &sample_;
  }
  return nullptr;
}

std::optional<TscRange> SampleReader::NextBracket() {
  while (!entries_.empty() || NextChunk()) {
    if (entries_.empty()) continue;
    if (!HoldsItems(chunk_.kind)) {
      entries_ = {};
      return sample_.when;
    }
    if (NextTimed()) return sample_.when;
  }
  return std::nullopt;
}

bool SampleReader::NextChunk() {
  if (items_left_ > 0) SkipInvalid(items_left_, 0);  // fewer than its header said
  items_left_ = 0;
  while (const std::optional<Chunk> chunk = chunks_.Next()) {
    if (chunk->header.kind == ChunkKind::kStacks) stacks_ = chunk;
    if (!HoldsSamples(chunk->header.kind)) continue;
    chunk_ = chunk->header;
    entries_ = chunk->entries;
    if (HoldsItems(chunk_.kind)) items_left_ = chunk_.items;
    stack_.reset();
    sample_ = {};
    sample_.vcpu = {DomainId{chunk_.domain}, VcpuId{chunk_.vcpu}};
    sample_.when = {Tsc{chunk_.previous_before}, Tsc{chunk_.after}};
    sample_.stopped = chunk_.kind == ChunkKind::kStopped;
    return true;
  }
  return false;
}

bool SampleReader::NextEntry() {
  const auto entry = LoadUnchecked<Entry>(entries_.data());
  if (entry.mode > static_cast<uint8_t>(Mode::kXen) || entry.event >= events_) {
    SkipInvalid(1, chunk_.entry_size);
    return false;
  }
  entries_ = entries_.subspan(chunk_.entry_size);
  sample_.mode = static_cast<Mode>(entry.mode);
  sample_.address = entry.address;
  sample_.event = entry.event;
  return true;
}

bool SampleReader::NextTimed() {
  const auto entry = Load<TimedEntry>(entries_, 0);
  if (!entry || items_left_ == 0 || entry->size < sizeof(TimedEntry) ||
      entry->size % kWordSize != 0) {
    MarkRestInvalid();
    return false;
  }
  const size_t callers = size_t{entry->xen_callers} + entry->kernel_callers + entry->user_callers;
  const std::optional<Bytes> chain = Slice(entries_, entry->size, callers * sizeof(Address));
  if (!chain) {
    MarkRestInvalid();
    return false;
  }
  const size_t size = entry->size + chain->size();
  stack_ = entry->size < sizeof *entry + sizeof(StackEntry)
               ? std::nullopt
               : Load<StackEntry>(entries_, sizeof *entry);
  --items_left_;
  if (entry->mode > static_cast<uint8_t>(Mode::kXen) || entry->event >= events_ ||
      entry->begin >= entry->end) {
    SkipInvalid(1, size);
    return false;
  }
  entries_ = entries_.subspan(size);
  sample_ = {};
  sample_.vcpu = {DomainId{chunk_.domain}, VcpuId{entry->vcpu}};
  sample_.mode = static_cast<Mode>(entry->mode);
  sample_.address = entry->address;
  sample_.event = entry->event;
  sample_.when = {Tsc{entry->begin}, Tsc{entry->end}};
  if (entry->pid != kNoThread) sample_.thread = Thread{entry->pid, entry->tid};
  // Samples from Xen's buffers have callers but no times, and no thread.
  sample_.timed = sample_.thread.has_value();
  if (sample_.vcpu.domain == kDomXen) {
    sample_.pcpu = PcpuId{entry->vcpu};
    sample_.thread.reset();
  }
  sample_.stopped = chunk_.kind == ChunkKind::kStoppedWithCallers;
  if (sample_.stopped) sample_.space = {entry->space};
  sample_.callers = CallChain(*chain, entry->xen_callers, entry->kernel_callers);
  return true;
}

// Passes over `bytes` of the entries, which hold `samples` samples that are not valid.
void SampleReader::SkipInvalid(uint64_t samples, size_t bytes) {
  chunks_.RecordDamage(chunks_.offset() - entries_.size());
  chunks_.damage().invalid_samples += samples;
  entries_ = entries_.subspan(bytes);
}

// Drops the rest of the chunk, when the end of an entry is not known.
void SampleReader::MarkRestInvalid() {
  const uint32_t rest = std::max(items_left_, 1U);
  items_left_ = 0;
  SkipInvalid(rest, entries_.size());
}

}  // namespace xenoscope::recording
