#include "recording/sample_reader.h"

#include <algorithm>

#include "base/error.h"

namespace xenoscope::recording {

absl::StatusOr<SampleReader> SampleReader::Open(Bytes file, size_t events) {
  XENOSCOPE_ASSIGN_OR_RETURN(ChunkReader chunks, ChunkReader::Open(file));
  return SampleReader(chunks, events);
}

std::optional<Sample> SampleReader::Next() {
  while (true) {
    while (entries_.empty()) {
      if (!NextChunk()) return std::nullopt;
    }
    const std::optional<Sample> sample = HoldsItems(chunk_.kind) ? NextTimed() : NextEntry();
    if (sample) return sample;
  }
}

std::optional<TscRange> SampleReader::NextBracket() {
  while (!entries_.empty() || NextChunk()) {
    if (entries_.empty()) continue;
    if (!HoldsItems(chunk_.kind)) {
      entries_ = {};
      return TscRange{Tsc{chunk_.previous_before}, Tsc{chunk_.after}};
    }
    if (const std::optional<Sample> sample = NextTimed()) return sample->when;
  }
  return std::nullopt;
}

bool SampleReader::NextChunk() {
  if (items_left_ > 0) Invalid(items_left_, 0);  // fewer than its header said
  items_left_ = 0;
  while (const std::optional<Chunk> chunk = chunks_.Next()) {
    if (chunk->header.kind == ChunkKind::kProcesses) continue;
    chunk_ = chunk->header;
    entries_ = chunk->entries;
    if (HoldsItems(chunk_.kind)) items_left_ = chunk_.items;
    return true;
  }
  return false;
}

// The sample of the next entry, or nothing when it is not valid.
std::optional<Sample> SampleReader::NextEntry() {
  const auto entry = LoadUnchecked<Entry>(entries_.data());
  if (entry.mode > static_cast<uint8_t>(Mode::kXen) || entry.event >= events_) {
    return Invalid(1, chunk_.entry_size);
  }
  entries_ = entries_.subspan(chunk_.entry_size);
  Sample sample;
  sample.vcpu = {DomainId{chunk_.domain}, VcpuId{chunk_.vcpu}};
  sample.mode = static_cast<Mode>(entry.mode);
  sample.address = entry.address;
  sample.event = entry.event;
  sample.when = {Tsc{chunk_.previous_before}, Tsc{chunk_.after}};
  sample.stopped = chunk_.kind == ChunkKind::kStopped;
  return sample;
}

std::optional<Sample> SampleReader::NextTimed() {
  const auto entry = Load<TimedEntry>(entries_, 0);
  if (!entry || items_left_ == 0 || entry->size < sizeof(TimedEntry) ||
      entry->size % kWordSize != 0) {
    return RestIsInvalid();
  }
  const size_t callers = size_t{entry->xen_callers} + entry->kernel_callers + entry->user_callers;
  const std::optional<Bytes> chain = Slice(entries_, entry->size, callers * sizeof(Address));
  if (!chain) return RestIsInvalid();
  const size_t size = entry->size + chain->size();
  --items_left_;
  if (entry->mode > static_cast<uint8_t>(Mode::kXen) || entry->event >= events_ ||
      entry->begin >= entry->end) {
    return Invalid(1, size);
  }
  entries_ = entries_.subspan(size);
  Sample sample;
  sample.vcpu = {DomainId{chunk_.domain}, VcpuId{entry->vcpu}};
  sample.mode = static_cast<Mode>(entry->mode);
  sample.address = entry->address;
  sample.event = entry->event;
  sample.when = {Tsc{entry->begin}, Tsc{entry->end}};
  if (entry->pid != kNoThread) sample.thread = Thread{entry->pid, entry->tid};
  // Xen, whose buffers have callers but no times, does not know whose a sample is.
  sample.timed = sample.thread.has_value();
  if (sample.vcpu.domain == kDomXen) {
    sample.pcpu = PcpuId{entry->vcpu};
    sample.thread.reset();
  }
  sample.stopped = chunk_.kind == ChunkKind::kStoppedWithCallers;
  sample.callers = CallChain(*chain, entry->xen_callers, entry->kernel_callers);
  return sample;
}

// Passes over `bytes` of the entries, which hold no good samples.
std::optional<Sample> SampleReader::Invalid(uint64_t samples, size_t bytes) {
  chunks_.Damaged(chunks_.offset() - entries_.size());
  chunks_.damage().invalid_samples += samples;
  entries_ = entries_.subspan(bytes);
  return std::nullopt;
}

// Where an entry ends is not known, nor then where the next one begins.
std::optional<Sample> SampleReader::RestIsInvalid() {
  const uint32_t rest = std::max(items_left_, 1U);
  items_left_ = 0;
  return Invalid(rest, entries_.size());
}

}  // namespace xenoscope::recording
