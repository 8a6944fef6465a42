#include "recording/sample_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <utility>

#include "base/bytes.h"
#include "base/error.h"
#include "recording/crc.h"

namespace xenoscope::recording {
namespace {

void Add(std::vector<std::byte>& to, Bytes bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

template <typename T>
Bytes BytesOf(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

}  // namespace

absl::StatusOr<SampleWriter> SampleWriter::Create(const std::string& path) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (fd < 0) return ErrnoError(errno, "cannot create {}", path);
  SampleWriter writer(path, fd);
  Add(writer.pending_, BytesOf(FileHeader{}));
  XENOSCOPE_RETURN_IF_ERROR(writer.Flush());
  return writer;
}

SampleWriter::SampleWriter(SampleWriter&& other) noexcept
    : path_(std::move(other.path_)),
      fd_(std::exchange(other.fd_, -1)),
      written_(other.written_),
      pending_(std::move(other.pending_)) {}

SampleWriter& SampleWriter::operator=(SampleWriter&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(written_, other.written_);
  std::swap(pending_, other.pending_);
  return *this;
}

SampleWriter::~SampleWriter() {
  if (fd_ >= 0) close(fd_);
}

void SampleWriter::Append(VcpuRef vcpu, const DrainTimes& times, std::span<const Entry> entries) {
  if (!entries.empty()) AppendChunk(ChunkKind::kBracketed, vcpu, times, entries);
}

void SampleWriter::AppendStopped(VcpuRef vcpu, TscRange when, const Entry& entry) {
  AppendChunk(ChunkKind::kStopped, vcpu, {when.begin, when.begin, when.end}, {&entry, 1});
}

void SampleWriter::AppendChunk(ChunkKind kind, VcpuRef vcpu, const DrainTimes& times,
                               std::span<const Entry> entries) {
  ChunkHeader header;
  header.kind = kind;
  header.domain = vcpu.domain.value;
  header.vcpu = vcpu.vcpu.value;
  header.count = static_cast<uint32_t>(entries.size());
  header.entry_size = sizeof(Entry);
  header.entries_crc = Crc32(std::as_bytes(entries));
  header.previous_before = times.previous_before.value;
  header.before = times.before.value;
  header.after = times.after.value;
  header.header_crc = Crc32(BytesOf(header).first(offsetof(ChunkHeader, header_crc)));
  Add(pending_, BytesOf(header));
  Add(pending_, std::as_bytes(entries));
}

absl::Status SampleWriter::Flush() {
  size_t done = 0;
  while (done < pending_.size()) {
    const ssize_t n = write(fd_, pending_.data() + done, pending_.size() - done);
    if (n > 0) {
      done += static_cast<size_t>(n);
      continue;
    }
    if (n < 0 && errno == EINTR) continue;
    const int error = n == 0 ? ENOSPC : errno;
    pending_.clear();
    if (ftruncate(fd_, static_cast<off_t>(written_)) == 0) lseek(fd_, 0, SEEK_END);
    if (error == ENOSPC || error == EDQUOT) {
      return ExhaustedError(
          "the disk is full: {} is kept up to byte {}; free some space, or record "
          "elsewhere with -o",
          path_, written_);
    }
    return ErrnoError(error, "cannot write {}", path_);
  }
  written_ += done;
  pending_.clear();
  return absl::OkStatus();
}

}  // namespace xenoscope::recording
