#include "recording/sample_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "base/bytes.h"
#include "base/crc.h"
#include "base/error.h"

namespace xenoscope::recording {
namespace {

void Add(std::vector<std::byte>& to, Bytes bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

template <typename T>
Bytes BytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

// Returns the header of entries of the domain, or of a vCPU of it, without the times.
ChunkHeader HeaderOf(ChunkKind kind, VcpuRef vcpu, size_t count, size_t entry_size) {
  ChunkHeader header;
  header.kind = kind;
  header.domain = vcpu.domain.value;
  header.vcpu = vcpu.vcpu.value;
  header.count = static_cast<uint32_t>(count);
  header.entry_size = static_cast<uint32_t>(entry_size);
  return header;
}

// The same with them.
ChunkHeader HeaderOf(ChunkKind kind, VcpuRef vcpu, const DrainTimes& times, size_t count,
                     size_t entry_size) {
  ChunkHeader header = HeaderOf(kind, vcpu, count, entry_size);
  header.previous_before = times.previous_before.value;
  header.before = times.before.value;
  header.after = times.after.value;
  return header;
}

}  // namespace

absl::StatusOr<SampleWriter> SampleWriter::Create(const std::string& path) {
  File file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.is_open()) return WriteError(errno, fmt::format("cannot create {}", path));
  return Create(std::move(file), path);
}

absl::StatusOr<SampleWriter> SampleWriter::Create(File file, std::string path) {
  SampleWriter writer(std::move(path), std::move(file));
  Add(writer.pending_, BytesOf(FileHeader{}));
  XENOSCOPE_RETURN_IF_ERROR(writer.Flush());
  return writer;
}

void TimedChunk::Add(const TimedEntry& entry, std::span<const Address> callers) {
  recording::Add(words_, BytesOf(entry));
  recording::Add(words_, std::as_bytes(callers));
  ++items_;
}

void TimedChunk::Add(TimedEntry entry, const StackEntry& stack, std::span<const Address> callers,
                     std::span<const OuterStackEntry> outer) {
  entry.size = static_cast<uint16_t>(sizeof entry + sizeof stack + outer.size_bytes());
  recording::Add(words_, BytesOf(entry));
  recording::Add(words_, BytesOf(stack));
  recording::Add(words_, std::as_bytes(outer));
  recording::Add(words_, std::as_bytes(callers));
  ++items_;
}

void TimedChunk::Clear() {
  words_.clear();
  items_ = 0;
}

void ProcessChunk::Add(ProcessEntry entry, const MapEntry* map, std::string_view text) {
  text = text.substr(0, kMaxTextBytes);
  const size_t bytes = sizeof entry + (map == nullptr ? 0 : sizeof *map) + text.size();
  entry.size = static_cast<uint16_t>((bytes + kWordSize - 1) / kWordSize * kWordSize);
  entry.text_size = static_cast<uint16_t>(text.size());
  recording::Add(words_, BytesOf(entry));
  if (map != nullptr) recording::Add(words_, BytesOf(*map));
  recording::Add(words_, AsBytes(text));
  words_.resize(words_.size() + entry.size - bytes);
  ++items_;
}

void ProcessChunk::Clear() {
  words_.clear();
  items_ = 0;
}

void SampleWriter::Append(VcpuRef vcpu, const DrainTimes& times, std::span<const Entry> entries) {
  if (!entries.empty()) AppendEntries(ChunkKind::kBracketed, vcpu, times, entries);
}

void SampleWriter::AppendStopped(VcpuRef vcpu, TscRange when, const Entry& entry) {
  AppendEntries(ChunkKind::kStopped, vcpu, {when.begin, when.begin, when.end}, {&entry, 1});
}

void SampleWriter::AppendStopped(DomainId domain, const TimedChunk& chunk) {
  AppendWords(ChunkKind::kStoppedWithCallers, domain, chunk.items_, chunk.words_);
}

void SampleWriter::Append(DomainId domain, const TimedChunk& chunk) {
  AppendWords(ChunkKind::kTimed, domain, chunk.items_, chunk.words_);
}

uint64_t SampleWriter::Append(DomainId domain, const TimedChunk& chunk, StackBlock& stacks) {
  return AppendWithStacks(ChunkKind::kTimed, domain, chunk, stacks);
}

uint64_t SampleWriter::AppendStopped(DomainId domain, const TimedChunk& chunk, StackBlock& stacks) {
  return AppendWithStacks(ChunkKind::kStoppedWithCallers, domain, chunk, stacks);
}

uint64_t SampleWriter::AppendWithStacks(ChunkKind kind, DomainId domain, const TimedChunk& chunk,
                                        StackBlock& stacks) {
  if (stacks.empty()) {
    AppendWords(kind, domain, chunk.items_, chunk.words_);
    return 0;
  }
  const Bytes compressed = stacks.Compress();
  ChunkHeader header = HeaderOf(ChunkKind::kStacks, {domain, VcpuId{}}, compressed.size(), 1);
  header.items = static_cast<uint32_t>(stacks.size());
  const uint32_t crc = AppendChunk(header, compressed);
  AppendWords(kind, domain, chunk.items_, chunk.words_, crc);
  return sizeof header + compressed.size();
}

void SampleWriter::Append(DomainId domain, const ProcessChunk& chunk) {
  AppendWords(ChunkKind::kProcesses, domain, chunk.items_, chunk.words_);
}

void SampleWriter::AppendTracePages(VcpuRef vcpu, const DrainTimes& times, uint32_t page_size,
                                    Bytes pages) {
  const size_t count = pages.size() / page_size;
  AppendChunk(HeaderOf(ChunkKind::kTracePages, vcpu, times, count, page_size),
              pages.first(count * page_size));
}

void SampleWriter::AppendTraceFormats(DomainId domain, std::string_view text) {
  AppendChunk(HeaderOf(ChunkKind::kTraceFormats, {domain, VcpuId{}}, text.size(), 1),
              AsBytes(text));
}

void SampleWriter::AppendPerfMaps(DomainId domain, std::string_view text) {
  AppendChunk(HeaderOf(ChunkKind::kPerfMaps, {domain, VcpuId{}}, text.size(), 1), AsBytes(text));
}

void SampleWriter::AppendClockAnswers(DomainId domain, std::span<const ClockAnswer> answers) {
  if (answers.empty()) return;
  AppendChunk(
      HeaderOf(ChunkKind::kClockAnswers, {domain, VcpuId{}}, answers.size(), sizeof(ClockAnswer)),
      std::as_bytes(answers));
}

void SampleWriter::AppendCpuTimes(DomainId domain, const DrainTimes& times,
                                  std::span<const CpuTimesEntry> entries) {
  if (entries.empty()) return;
  AppendChunk(HeaderOf(ChunkKind::kCpuTimes, {domain, VcpuId{}}, times, entries.size(),
                       sizeof(CpuTimesEntry)),
              std::as_bytes(entries));
}

void SampleWriter::Append(Bytes chunks) { Add(pending_, chunks); }

void SampleWriter::AppendEntries(ChunkKind kind, VcpuRef vcpu, const DrainTimes& times,
                                 std::span<const Entry> entries) {
  AppendChunk(HeaderOf(kind, vcpu, times, entries.size(), sizeof(Entry)), std::as_bytes(entries));
}

void SampleWriter::AppendWords(ChunkKind kind, DomainId domain, uint32_t items, Bytes words,
                               uint32_t vcpu) {
  if (items == 0) return;
  ChunkHeader header = HeaderOf(kind, {domain, VcpuId{vcpu}}, words.size() / kWordSize, kWordSize);
  header.items = items;
  AppendChunk(header, words);
}

uint32_t SampleWriter::AppendChunk(ChunkHeader header, Bytes entries) {
  header.entries_crc = Crc32(entries);
  header.header_crc = Crc32(BytesOf(header).first(offsetof(ChunkHeader, header_crc)));
  Add(pending_, BytesOf(header));
  Add(pending_, entries);
  return header.entries_crc;
}

absl::Status SampleWriter::Flush() {
  if (!file_.is_open()) return absl::OkStatus();
  const std::vector<std::byte> bytes = Take();
  if (const int error = WriteAll(file_.fd(), bytes); error != 0) {
    if (ftruncate(file_.fd(), static_cast<off_t>(written_)) == 0) lseek(file_.fd(), 0, SEEK_END);
    return WriteError(error, written_ == 0
                                 ? fmt::format("cannot write {}", path_)
                                 : fmt::format("{} is kept up to byte {}", path_, written_));
  }
  written_ += bytes.size();
  return absl::OkStatus();
}

}  // namespace xenoscope::recording
