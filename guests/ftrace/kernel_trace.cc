#include "guests/ftrace/kernel_trace.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "recording/chunk_reader.h"
#include "recording/process_reader.h"

namespace xenoscope::guests {

using recording::ChunkKind;

absl::StatusOr<std::optional<KernelTrace>> KernelTrace::Open(Bytes file, DomainId domain,
                                                             std::optional<DomainId> written_as) {
  KernelTrace trace(domain);
  const DomainId written = written_as.value_or(domain);
  std::string formats;
  std::optional<uint32_t> page_size;
  XENOSCOPE_ASSIGN_OR_RETURN(recording::ChunkReader chunks, recording::ChunkReader::Open(file));
  while (const std::optional<recording::Chunk> chunk = chunks.Next()) {
    const recording::ChunkHeader& header = chunk->header;
    if (header.domain != written.value) continue;
    if (header.kind == ChunkKind::kTraceFormats) {
      if (formats.size() + chunk->entries.size() > kMaxFormatsBytes) {
        return InvalidError("the formats of events have more than {} bytes", kMaxFormatsBytes);
      }
      formats += AsText(chunk->entries);
    }
    if (header.kind == ChunkKind::kClockAnswers) {
      trace.AddAnswers(chunk->entries, header.entry_size);
    }
    if (header.kind != ChunkKind::kTracePages || chunk->entries.empty()) continue;
    if (header.vcpu >= kMaxCpus || page_size.value_or(header.entry_size) != header.entry_size) {
      return InvalidError("pages of CPU {} have {} bytes, others {}", header.vcpu,
                          header.entry_size, page_size.value_or(0));
    }
    page_size = header.entry_size;
    if (trace.pages_.size() <= header.vcpu) trace.pages_.resize(header.vcpu + size_t{1});
    trace.pages_[header.vcpu].push_back(chunk->entries);
  }
  if (!page_size) return std::nullopt;
  XENOSCOPE_ASSIGN_OR_RETURN(trace.formats_, ParseFormats(formats));
  XENOSCOPE_ASSIGN_OR_RETURN(trace.decoder_, EventDecoder::Create(trace.formats_));
  if (*page_size != trace.formats_.page.PageSize()) {
    return InvalidError("a page of the kernel's trace has {} bytes, and its format says {}",
                        *page_size, trace.formats_.page.PageSize());
  }
  XENOSCOPE_RETURN_IF_ERROR(trace.ReadThreads(file, written));
  return trace;
}

void KernelTrace::AddAnswers(Bytes entries, uint32_t entry_size) {
  for (; entries.size() >= entry_size; entries = entries.subspan(entry_size)) {
    const auto answer = Load<recording::ClockAnswer>(entries, 0);
    if (!answer || answer->after < answer->before) {
      ++clock_.bad_answers;
      continue;
    }
    const auto min = static_cast<int64_t>(answer->guest - answer->after);
    const auto max = static_cast<int64_t>(answer->guest - answer->before);
    const correlate::OffsetRange both{std::max(clock_.offset.min, min),
                                      std::min(clock_.offset.max, max)};
    if (min > max || both.min > both.max) {
      ++clock_.bad_answers;
    } else {
      clock_.offset = both;
      ++clock_.answers;
    }
  }
}

absl::Status KernelTrace::ReadThreads(Bytes file, DomainId written_as) {
  XENOSCOPE_ASSIGN_OR_RETURN(recording::ProcessReader processes,
                             recording::ProcessReader::Open(file));
  while (const std::optional<recording::ProcessRecord> record = processes.Next()) {
    if (record->domain != written_as) continue;
    if (record->type == recording::ProcessEntryType::kThread) {
      threads_.push_back({record->pid, record->tid, record->text});
    } else if (record->type == recording::ProcessEntryType::kCgroup) {
      cgroups_.push_back({record->pid, record->text});
    }
  }
  return absl::OkStatus();
}

bool CpuCursor::NextPage() {
  faults_.damaged_bytes += reader_.damaged_bytes();
  const std::vector<Bytes>& runs = trace_->PagesOf(cpu_);
  while (rest_.empty()) {
    if (run_ == runs.size()) return false;
    rest_ = runs[run_++];
  }
  const size_t size = std::min<size_t>(trace_->formats().page.PageSize(), rest_.size());
  reader_ = PageReader(rest_.first(size), trace_->formats().page);
  rest_ = rest_.subspan(size);
  loss_pending_ = loss_pending_ || reader_.lost_before();
  return true;
}

bool CpuCursor::Next() {
  const uint64_t before = event_.tsc;
  RawEvent raw;
  while (true) {
    while (!reader_.Next(raw)) {
      if (!NextPage()) {
        reader_ = PageReader(Bytes(), trace_->formats().page);
        return false;
      }
    }
    ++events_;
    bool malformed = false;
    if (trace_->decoder().Decode(raw, event_, malformed)) break;
    faults_.malformed += malformed ? 1 : 0;
  }
  if (event_.tsc < before) {
    ++faults_.disordered;
    event_.tsc = before;
  }
  after_loss_ = std::exchange(loss_pending_, false);
  return true;
}

}  // namespace xenoscope::guests
