// A writer of one samples/NAME.samples. The file is only appended to: however the process ends, a
// reader gets every drain that was flushed.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
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
#include "recording/stack_block.h"

namespace xenoscope::recording {

// The TSC readings around a drain, and before the one before it.
struct DrainTimes {
  Tsc previous_before;
  Tsc before;
  Tsc after;
};

// A chunk in the making: samples of one domain that each have a time, in the domain's order.
class TimedChunk {
 public:
  // `callers` are entry.xen_callers callers in Xen, then kernel_callers, then user_callers.
  void Add(const TimedEntry& entry, std::span<const Address> callers);
  // Adds a sample whose stacks are in the block with which the chunk is written.
  void Add(TimedEntry entry, const StackEntry& stack, std::span<const Address> callers,
           std::span<const OuterStackEntry> outer = {});
  [[nodiscard]] bool empty() const { return items_ == 0; }
  void Clear();

 private:
  friend class SampleWriter;
  std::vector<std::byte> words_;
  uint32_t items_ = 0;
};

// A chunk in the making: what is known of the processes of one domain.
class ProcessChunk {
 public:
  // Adds an item and sets the sizes in `entry`. `text` is cut to kMaxTextBytes bytes. `map` is null
  // unless the type is kMap, kFileId or kSpaceMap.
  void Add(ProcessEntry entry, const MapEntry* map, std::string_view text);
  [[nodiscard]] bool empty() const { return items_ == 0; }
  void Clear();

  static constexpr size_t kMaxTextBytes = 4096;  // PATH_MAX

 private:
  friend class SampleWriter;
  std::vector<std::byte> words_;
  uint32_t items_ = 0;
};

// The writer.
class SampleWriter {
 public:
  // Makes the file, which must not exist, and writes its header. Errors: those of WriteError.
  static absl::StatusOr<SampleWriter> Create(const std::string& path);
  // Writes into `file`, which is new; errors call it `path`.
  static absl::StatusOr<SampleWriter> Create(File file, std::string path);
  // Returns a writer without a file: Flush does nothing, and Take returns the chunks.
  static SampleWriter InMemory() { return {"", File()}; }

  // Limits the bytes that wait for Flush or Take. A source appends no more than room() of what it
  // can keep for later; the writer takes all that is appended.
  void SetLimit(size_t bytes) { limit_ = bytes; }
  // Returns the number of bytes that there is room for.
  [[nodiscard]] size_t room() const { return limit_ - std::min(limit_, pending_.size()); }

  // Adds the entries of one vCPU's buffer, in the order in which they left it. They stay in memory
  // until Flush.
  void Append(VcpuRef vcpu, const DrainTimes& times, std::span<const Entry> entries);

  // Adds the entry of a vCPU that was stopped within `when` to be read. It stays in memory until
  // Flush.
  void AppendStopped(VcpuRef vcpu, TscRange when, const Entry& entry);

  // Adds such an entry with callers: the one sample of `chunk`.
  void AppendStopped(DomainId domain, const TimedChunk& chunk);
  // Adds such an entry, and its stack. Returns the bytes that the stack takes in the file.
  uint64_t AppendStopped(DomainId domain, const TimedChunk& chunk, StackBlock& stacks);

  // Adds samples that each have a time. They stay in memory until Flush.
  void Append(DomainId domain, const TimedChunk& chunk);
  // Adds such samples, and the stacks of those that have one. Returns the bytes that the stacks
  // take in the file.
  uint64_t Append(DomainId domain, const TimedChunk& chunk, StackBlock& stacks);
  void Append(DomainId domain, const ProcessChunk& chunk);

  // Adds pages of `page_size` bytes from the trace buffer of the vCPU's kernel, in their order.
  void AppendTracePages(VcpuRef vcpu, const DrainTimes& times, uint32_t page_size, Bytes pages);
  // Adds what JIT compilers of the domain have written (ChunkKind::kPerfMaps).
  void AppendPerfMaps(DomainId domain, std::string_view text);
  // Adds the text of the formats of these pages and their events (guests/ftrace/formats.h).
  void AppendTraceFormats(DomainId domain, std::string_view text);

  // Adds what the domain's TSC was.
  void AppendClockAnswers(DomainId domain, std::span<const ClockAnswer> answers);
  // Appends what the domain's kernel said of its CPUs, which was read between `before` and `after`.
  void AppendCpuTimes(DomainId domain, const DrainTimes& times,
                      std::span<const CpuTimesEntry> entries);

  // Adds whole chunks from another writer's Take. They stay in memory until Flush.
  void Append(Bytes chunks);

  // Hands all that was appended to the kernel. When the disk is full (ResourceExhausted) or the
  // write fails, a part that was written is cut off again, so that the file ends with a whole
  // chunk.
  absl::Status Flush();

  // Returns the chunks that were appended and not flushed, and forgets them.
  std::vector<std::byte> Take() { return std::exchange(pending_, {}); }

  [[nodiscard]] uint64_t bytes_written() const { return written_; }

 private:
  SampleWriter(std::string path, File file) : path_(std::move(path)), file_(std::move(file)) {}

  void AppendEntries(ChunkKind kind, VcpuRef vcpu, const DrainTimes& times,
                     std::span<const Entry> entries);
  uint64_t AppendWithStacks(ChunkKind kind, DomainId domain, const TimedChunk& chunk,
                            StackBlock& stacks);
  // `vcpu` is that of the header.
  void AppendWords(ChunkKind kind, DomainId domain, uint32_t items, Bytes words, uint32_t vcpu = 0);
  // Returns the checksum of the entries.
  uint32_t AppendChunk(ChunkHeader header, Bytes entries);

  std::string path_;
  File file_;
  uint64_t written_ = 0;
  size_t limit_ = std::numeric_limits<size_t>::max();  // of the bytes in pending_
  std::vector<std::byte> pending_;
};

}  // namespace xenoscope::recording
