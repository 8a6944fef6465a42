// Writes one samples/NAME.samples. Append only: whatever ends the process, a reader gets every
// drain that was flushed.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/file.h"
#include "base/ids.h"
#include "base/mode.h"
#include "base/tsc.h"
#include "recording/sample_format.h"

namespace xenoscope::recording {

// When a drain looked, and when the one before it did.
struct DrainTimes {
  Tsc previous_before;
  Tsc before;
  Tsc after;
};

// Samples of one domain that each have a time, in its order, put together for one chunk.
class TimedChunk {
 public:
  // `callers` are entry.xen_callers, then kernel_callers, then user_callers.
  void Add(const TimedEntry& entry, std::span<const Address> callers);
  bool empty() const { return items_ == 0; }
  void Clear();

 private:
  friend class SampleWriter;
  std::vector<std::byte> words_;
  uint32_t items_ = 0;
};

// What is known of the processes of one domain, put together for one chunk.
class ProcessChunk {
 public:
  // Sets the sizes in `entry`. `text` is cut to kMaxTextBytes bytes. `map` is null unless it is
  // one.
  void Add(ProcessEntry entry, const MapEntry* map, std::string_view text);
  bool empty() const { return items_ == 0; }
  void Clear();

  static constexpr size_t kMaxTextBytes = 4096;  // PATH_MAX

 private:
  friend class SampleWriter;
  std::vector<std::byte> words_;
  uint32_t items_ = 0;
};

class SampleWriter {
 public:
  // Makes the file, which must not exist, and writes its header. Errors: those of WriteError.
  static absl::StatusOr<SampleWriter> Create(const std::string& path);
  // The same, into a file that is new; `path` is what it is called in errors.
  static absl::StatusOr<SampleWriter> Create(File file, std::string path);
  // Without a file: Flush does nothing, and the chunks are there for Take.
  static SampleWriter InMemory() { return {"", File()}; }

  // Adds the entries of one vCPU's buffer, in the order in which they left it. In memory until
  // Flush.
  void Append(VcpuRef vcpu, const DrainTimes& times, std::span<const Entry> entries);

  // Adds the entry of a vCPU that was stopped within `when` to be read. In memory until Flush.
  void AppendStopped(VcpuRef vcpu, TscRange when, const Entry& entry);

  // Likewise, with callers: `chunk` has its one sample.
  void AppendStopped(DomainId domain, const TimedChunk& chunk);

  // Adds samples that each have a time. In memory until Flush.
  void Append(DomainId domain, const TimedChunk& chunk);
  void Append(DomainId domain, const ProcessChunk& chunk);

  // Adds whole chunks that another writer put together: what its Take gave. In memory until Flush.
  void Append(Bytes chunks);

  // Hands all that was appended to the kernel. When the disk is full (ResourceExhausted) or the
  // write fails, what had gone out in part is cut off again, so that the file ends with a whole
  // chunk.
  absl::Status Flush();

  // The chunks that were appended and not flushed; the writer has them no more.
  std::vector<std::byte> Take() { return std::exchange(pending_, {}); }

  uint64_t bytes_written() const { return written_; }

 private:
  SampleWriter(std::string path, File file) : path_(std::move(path)), file_(std::move(file)) {}

  void AppendEntries(ChunkKind kind, VcpuRef vcpu, const DrainTimes& times,
                     std::span<const Entry> entries);
  void AppendWords(ChunkKind kind, DomainId domain, uint32_t items, Bytes words);
  void AppendChunk(ChunkHeader header, Bytes entries);

  std::string path_;
  File file_;
  uint64_t written_ = 0;
  std::vector<std::byte> pending_;
};

}  // namespace xenoscope::recording
