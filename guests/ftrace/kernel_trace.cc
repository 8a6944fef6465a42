#include "guests/ftrace/kernel_trace.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "recording/process_reader.h"

namespace xenoscope::guests {

using recording::ChunkKind;

absl::StatusOr<std::optional<KernelTrace>> KernelTrace::Open(Bytes file, DomainId domain,
                                                             std::optional<DomainId> written_as) {
  KernelTrace trace(domain);
  const Parts parts{.written_as = written_as.value_or(domain)};
  std::string formats;
  uint64_t read = 0;
  XENOSCOPE_ASSIGN_OR_RETURN(const bool has_pages, trace.ReadChunks(file, parts, formats, read));
  trace.clock_.Finish();
  if (!has_pages) return std::nullopt;
  XENOSCOPE_RETURN_IF_ERROR(trace.SetFormats(formats));
  XENOSCOPE_RETURN_IF_ERROR(trace.ReadThreads(file, parts));
  return trace;
}

absl::StatusOr<std::optional<KernelTrace>> KernelTrace::OpenLive(Bytes file, DomainId domain,
                                                                 uint64_t pages_begin,
                                                                 KernelTraceBegin& begin) {
  KernelTrace trace(domain);
  const Parts parts{.written_as = domain, .pages = pages_begin, .rest = begin.read_};
  trace.clock_ = std::move(begin.clock_);
  uint64_t read = begin.read_;
  const auto has_pages = trace.ReadChunks(file, parts, begin.formats_, read);
  begin.clock_ = trace.clock_;  // answers that do not agree with those before may go on
  XENOSCOPE_RETURN_IF_ERROR(has_pages.status());
  XENOSCOPE_RETURN_IF_ERROR(trace.ReadThreads(file, parts));
  begin.Keep(trace.threads_, trace.cgroups_);
  begin.read_ = read;
  trace.clock_.Finish();
  if (!*has_pages) return std::nullopt;
  XENOSCOPE_RETURN_IF_ERROR(trace.SetFormats(begin.formats_));
  trace.threads_.clear();
  trace.cgroups_.clear();
  for (const KernelTraceBegin::Thread& thread : begin.threads_) {
    trace.threads_.push_back({thread.pid, thread.tid, thread.name});
  }
  for (const KernelTraceBegin::Process& process : begin.processes_) {
    trace.cgroups_.push_back({process.pid, process.cgroup});
  }
  return trace;
}

absl::StatusOr<bool> KernelTrace::ReadChunks(Bytes file, const Parts& parts, std::string& formats,
                                             uint64_t& read) {
  XENOSCOPE_ASSIGN_OR_RETURN(recording::ChunkReader chunks, recording::ChunkReader::Open(file));
  chunks.SkipTo(std::min(parts.pages, parts.rest));
  while (const std::optional<recording::Chunk> chunk = chunks.Next()) {
    const recording::ChunkHeader& header = chunk->header;
    read = std::max(read, chunks.offset());
    if (header.domain != parts.written_as.value) continue;
    const bool is_new = chunk->at >= parts.rest;
    if (header.kind == ChunkKind::kTraceFormats && is_new) {
      if (formats.size() + chunk->entries.size() > kMaxFormatsBytes) {
        return InvalidError("the formats of events have more than {} bytes", kMaxFormatsBytes);
      }
      formats += AsText(chunk->entries);
    }
    if (header.kind == ChunkKind::kClockAnswers && is_new) {
      AddAnswers(chunk->entries, header.entry_size);
    }
    if (header.kind == ChunkKind::kCpuTimes && is_new) AddCpuTimes(*chunk);
    if (header.kind != ChunkKind::kTracePages || chunk->entries.empty() ||
        chunk->at < parts.pages) {
      continue;
    }
    if (header.vcpu >= kMaxCpus || page_size_.value_or(header.entry_size) != header.entry_size) {
      return InvalidError("pages of CPU {} have {} bytes, others {}", header.vcpu,
                          header.entry_size, page_size_.value_or(0));
    }
    page_size_ = header.entry_size;
    if (pages_.size() <= header.vcpu) pages_.resize(header.vcpu + size_t{1});
    pages_[header.vcpu].push_back(chunk->entries);
  }
  return page_size_.has_value();
}

absl::Status KernelTrace::SetFormats(std::string_view formats) {
  XENOSCOPE_ASSIGN_OR_RETURN(formats_, ParseFormats(formats));
  XENOSCOPE_ASSIGN_OR_RETURN(decoder_, EventDecoder::Create(formats_));
  if (page_size_ == formats_.page.PageSize()) return absl::OkStatus();
  return InvalidError("a page of the kernel's trace has {} bytes, and its format says {}",
                      page_size_.value_or(0), formats_.page.PageSize());
}

void KernelTraceBegin::Keep(std::span<const InitialThread> threads,
                            std::span<const InitialCgroup> cgroups) {
  for (const InitialThread& thread : threads) {
    if (threads_.size() == kMaxThreads) break;
    threads_.push_back({.pid = thread.pid, .tid = thread.tid, .name = std::string(thread.name)});
  }
  for (const InitialCgroup& cgroup : cgroups) {
    if (processes_.size() == kMaxThreads) break;
    processes_.push_back({cgroup.pid, std::string(cgroup.path)});
  }
}

namespace {

// Narrows the epoch by an answer that agrees with it.
bool Narrow(AnsweredEpoch& epoch, Tsc before, uint64_t guest, Tsc after) {
  const auto min = static_cast<int64_t>(guest - after.value);
  const auto max = static_cast<int64_t>(guest - before.value);
  const correlate::OffsetRange both{std::max(epoch.offset.min, min),
                                    std::min(epoch.offset.max, max)};
  if (min > max || both.min > both.max) return false;
  epoch.offset = both;
  if (epoch.answers++ == 0) epoch.set_before = after;
  epoch.set_after = before;
  return true;
}

}  // namespace

void AnsweredClock::Add(Tsc before, uint64_t guest, Tsc after) {
  if (after < before) {
    ++bad_answers;
    return;
  }
  if (epochs.empty()) epochs.emplace_back();
  if (Narrow(epochs.back(), before, guest, after)) {
    ++answers;
    Finish();  // the answers between were exceptions
    return;
  }
  if (epochs.size() == kMaxEpochs) {
    ++bad_answers;
    return;
  }
  if (next_ && Narrow(*next_, before, guest, after)) {
    answers += next_->answers;
    epochs.push_back(*std::exchange(next_, std::nullopt));
    return;
  }
  Finish();
  next_.emplace();
  if (!Narrow(*next_, before, guest, after)) {
    next_.reset();
    ++bad_answers;
  }
}

void AnsweredClock::Finish() {
  if (next_) bad_answers += next_->answers;
  next_.reset();
}

void KernelTrace::AddAnswers(Bytes entries, uint32_t entry_size) {
  for (; entries.size() >= entry_size; entries = entries.subspan(entry_size)) {
    const auto answer = Load<recording::ClockAnswer>(entries, 0);
    if (answer) {
      clock_.Add(Tsc{answer->before}, answer->guest, Tsc{answer->after});
    } else {
      ++clock_.bad_answers;
    }
  }
}

void KernelTrace::AddCpuTimes(const recording::Chunk& chunk) {
  const recording::ChunkHeader& header = chunk.header;
  for (Bytes rest = chunk.entries; rest.size() >= header.entry_size;
       rest = rest.subspan(header.entry_size)) {
    const auto entry = Load<recording::CpuTimesEntry>(rest, 0);
    if (!entry || entry->cpu >= kMaxCpus) continue;  // no vCPU of Xen has such a number
    if (cpu_times_.size() <= entry->cpu) cpu_times_.resize(entry->cpu + size_t{1});
    CpuTimesReadings& readings = cpu_times_[entry->cpu];
    if (readings.first) {
      const recording::CpuTimesEntry& before = readings.last.entry;
      readings.goes_back |=
          entry->busy < before.busy || entry->idle < before.idle || entry->steal < before.steal;
    }
    readings.last = {*entry, {Tsc{header.previous_before}, Tsc{header.after}}};
    if (!readings.first) readings.first = readings.last;
  }
}

absl::Status KernelTrace::ReadThreads(Bytes file, const Parts& parts) {
  XENOSCOPE_ASSIGN_OR_RETURN(recording::ProcessReader processes,
                             recording::ProcessReader::Open(file));
  processes.SkipTo(parts.rest);
  while (const std::optional<recording::ProcessRecord> record = processes.Next()) {
    if (record->domain != parts.written_as) continue;
    if (record->type == recording::ProcessEntryType::kThread) {
      threads_.push_back({record->pid, record->tid, record->text});
    } else if (record->type == recording::ProcessEntryType::kCgroup) {
      cgroups_.push_back({record->pid, record->text});
    }
  }
  return absl::OkStatus();
}

CpuCursor::CpuCursor(const KernelTrace& trace, size_t cpu, const EventClock& clock)
    : CpuCursor(trace, cpu) {
  for (const EventClock::Part& part : clock.parts) {
    clock_.push_back({part.first_events.empty() ? 0 : part.first_events[cpu], part.offset});
  }
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
  while (NextOfAll()) {
    if (is_known_) return true;
    loss_pending_ = after_loss_;  // the next event that is known comes after the loss, too
  }
  return false;
}

bool CpuCursor::NextOfAll() {
  while (!reader_.Next(raw_)) {
    if (!NextPage()) {
      reader_ = PageReader(Bytes(), trace_->formats().page);
      return false;
    }
  }
  ++events_;
  bool malformed = false;
  is_known_ = trace_->decoder().Decode(raw_, event_, malformed);
  faults_.malformed += malformed ? 1 : 0;
  SetTime();
  after_loss_ = std::exchange(loss_pending_, false);
  return true;
}

void CpuCursor::SetTime() {
  if (clock_.empty()) {
    at_ = Tsc{raw_.tsc};
    return;
  }
  while (part_ + 1 < clock_.size() && events_ >= clock_[part_ + 1].first_event) ++part_;
  const Tsc at{raw_.tsc - static_cast<uint64_t>(clock_[part_].offset)};
  if (at < at_) ++faults_.disordered;
  at_ = std::max(at_, at);
}

}  // namespace xenoscope::guests
