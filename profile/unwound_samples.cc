#include "profile/unwound_samples.h"

#include <cstddef>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "recording/chunk_reader.h"
#include "recording/sample_writer.h"
#include "recording/stack_block.h"
#include "symbolizer/parallel.h"
#include "symbolizer/unwind/unwinder.h"

namespace xenoscope::profile {
namespace {

using recording::Chunk;
using recording::ChunkKind;
using recording::StackEntry;
using recording::TimedEntry;
using recording::UserStack;

// Chunks that are unwound at a time, so that memory is bounded.
constexpr size_t kChunksAtATime = 64;

// The code of processes, for several threads.
class SharedCode final : public symbolizer::UnwindCodeSource {
 public:
  explicit SharedCode(symbolizer::ProcessImages& images) : images_(images) {}

  symbolizer::UnwindCode CodeAt(AddressSpaceId space, Address address) override {
    const std::lock_guard lock(mutex_);
    return images_.UnwindCodeAt(space, address);
  }

 private:
  std::mutex mutex_;
  symbolizer::ProcessImages& images_;
};

// The samples of one chunk, and the chunk that has their stacks.
struct Work {
  Chunk samples;
  std::optional<Chunk> stacks;  // nothing: that is damaged
  uint64_t gap_begin = 0;  // bytes of the file before the samples that stay as they are, from here
  uint64_t gap_end = 0;    // to here
  std::vector<std::byte> unwound;
  UnwindCounts counts;
};

// What a thread needs to unwind, and reuses.
class Worker {
 public:
  Worker(symbolizer::UnwindCodeSource& code, const RecordedProcesses& processes)
      : unwinder_(code), processes_(processes) {}

  void Unwind(Work& work) {
    has_block_ = work.stacks && block_.Read(*work.stacks).ok();
    if (!has_block_) ++work.counts.damaged_blocks;
    chunk_.Clear();
    Bytes entries = work.samples.entries;
    uint32_t left = work.samples.header.items;
    while (left > 0 && Take(DomainId{work.samples.header.domain}, entries, work.counts)) --left;
    if (left > 0 || !entries.empty()) {
      // It is not as a writer leaves it: the reader of samples says what is wrong.
      work.counts = {};
      return;
    }
    writer_.Append(DomainId{work.samples.header.domain}, chunk_);
    work.unwound = writer_.Take();
  }

 private:
  // Takes one sample off the entries. False: it is cut off.
  bool Take(DomainId domain, Bytes& entries, UnwindCounts& counts) {
    const auto entry = Load<TimedEntry>(entries, 0);
    if (!entry || entry->size < sizeof *entry) return false;
    const uint64_t count =
        uint64_t{entry->xen_callers} + entry->kernel_callers + entry->user_callers;
    const auto callers = Slice(entries, entry->size, count * sizeof(Address));
    if (!callers) return false;
    const auto stack = entry->size < sizeof *entry + sizeof(StackEntry)
                           ? std::nullopt
                           : Load<StackEntry>(entries, sizeof *entry);
    entries = entries.subspan(entry->size + callers->size());
    callers_.clear();
    for (size_t i = 0; i < count; ++i) {
      callers_.push_back(LoadUnchecked<Address>(callers->data() + i * sizeof(Address)));
    }
    const bool in_user_mode = entry->mode == static_cast<uint8_t>(Mode::kUser);
    if (entry->user_callers == 0 && (stack || in_user_mode)) {
      AddUserCallers(domain, *entry, stack.value_or(StackEntry()), counts);
    }
    TimedEntry written = *entry;
    written.size = sizeof written;
    written.user_callers =
        static_cast<uint16_t>(callers_.size() - entry->xen_callers - entry->kernel_callers);
    chunk_.Add(written, callers_);
    return true;
  }

  void AddUserCallers(DomainId domain, const TimedEntry& entry, const StackEntry& at,
                      UnwindCounts& counts) {
    const size_t before = callers_.size();
    symbolizer::UnwoundChain chain{.end = ChainEnd::kNoStack};
    const std::optional<UserStack> stack = has_block_ ? block_.At(at) : std::nullopt;
    if (stack) {
      const Address pc = stack->registers[kRip];
      // The kernel was called, or interrupted user mode, there.
      if (entry.mode != static_cast<uint8_t>(Mode::kUser)) callers_.push_back(pc);
      const AddressSpaceId space = processes_.SpaceOf(domain, entry.pid, Tsc{entry.end - 1});
      chain = unwinder_.Unwind(space, stack->registers, {stack->registers[kRsp], stack->bytes},
                               callers_);
    }
    counts.callers += callers_.size() - before;
    counts.by_frame_pointer += chain.by_frame_pointer;
    ++counts.chains.at(static_cast<size_t>(chain.end));
    if (chain.end != ChainEnd::kOutermost) callers_.push_back(AddressOf(chain.end));
  }

  symbolizer::Unwinder unwinder_;
  const RecordedProcesses& processes_;
  recording::ReadStackBlock block_;
  bool has_block_ = false;
  std::vector<Address> callers_;
  recording::TimedChunk chunk_;
  recording::SampleWriter writer_ = recording::SampleWriter::InMemory();
};

// Workers that are not at work.
class Workers {
 public:
  Workers(symbolizer::UnwindCodeSource& code, const RecordedProcesses& processes)
      : code_(code), processes_(processes) {}

  void Unwind(Work& work) {
    std::unique_ptr<Worker> worker = Take();
    worker->Unwind(work);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(worker));
  }

 private:
  std::unique_ptr<Worker> Take() {
    const std::lock_guard lock(mutex_);
    if (idle_.empty()) return std::make_unique<Worker>(code_, processes_);
    std::unique_ptr<Worker> worker = std::move(idle_.back());
    idle_.pop_back();
    return worker;
  }

  symbolizer::UnwindCodeSource& code_;
  const RecordedProcesses& processes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

// Rewrites the file of one source: chunks of samples with stacks become such with callers, and all
// else stays, damage included.
class Rewriter {
 public:
  Rewriter(Bytes file, Workers& workers, recording::TemporaryFile& out)
      : file_(file), workers_(workers), out_(out) {}

  absl::StatusOr<UnwindCounts> Run() {
    XENOSCOPE_ASSIGN_OR_RETURN(recording::ChunkReader chunks, recording::ChunkReader::Open(file_));
    while (const std::optional<Chunk> chunk = chunks.Next()) {
      const bool is_stacks = chunk->header.kind == ChunkKind::kStacks;
      // Without stacks of its own, a chunk's `vcpu` is 0.
      if (!is_stacks && (chunk->header.kind != ChunkKind::kTimed || chunk->header.vcpu == 0)) {
        continue;
      }
      if (is_stacks) {
        KeepUpTo(chunk->at);
        stacks_ = chunk;
      } else {
        AddWork(*chunk);
      }
      rest_begin_ = EndOf(*chunk);
      if (works_.size() == kChunksAtATime) XENOSCOPE_RETURN_IF_ERROR(Flush());
    }
    KeepUpTo(file_.size());
    XENOSCOPE_RETURN_IF_ERROR(Flush());
    return counts_;
  }

 private:
  static uint64_t EndOf(const Chunk& chunk) {
    return chunk.at + sizeof chunk.header + chunk.entries.size();
  }

  // Keeps the bytes from the last chunk that is left out or replaced to `end`.
  void KeepUpTo(uint64_t end) {
    if (end == rest_begin_) return;
    Work& work = works_.emplace_back();
    work.gap_begin = rest_begin_;
    work.gap_end = end;
  }

  void AddWork(const Chunk& chunk) {
    KeepUpTo(chunk.at);
    Work& work = works_.emplace_back();
    work.samples = chunk;
    const bool is_its_own = stacks_ && stacks_->header.entries_crc == chunk.header.vcpu;
    if (is_its_own) work.stacks = stacks_;
    work.gap_begin = chunk.at;
    work.gap_end = EndOf(chunk);
  }

  absl::Status Flush() {
    symbolizer::ForEachInParallel(works_.size(), 1, [this](size_t i) {
      if (works_[i].samples.header.items > 0) workers_.Unwind(works_[i]);
    });
    for (Work& work : works_) {
      counts_.Add(work.counts);
      XENOSCOPE_RETURN_IF_ERROR(out_.Write(
          work.unwound.empty() ? file_.subspan(work.gap_begin, work.gap_end - work.gap_begin)
                               : Bytes(work.unwound)));
    }
    works_.clear();
    return absl::OkStatus();
  }

  Bytes file_;
  Workers& workers_;
  recording::TemporaryFile& out_;
  uint64_t rest_begin_ = 0;
  std::optional<Chunk> stacks_;
  std::vector<Work> works_;
  UnwindCounts counts_;
};

}  // namespace

uint64_t UnwindCounts::Chains() const {
  return std::accumulate(chains.begin(), chains.end(), uint64_t{0});
}

void UnwindCounts::Add(const UnwindCounts& other) {
  for (size_t i = 0; i < chains.size(); ++i) chains.at(i) += other.chains.at(i);
  callers += other.callers;
  by_frame_pointer += other.by_frame_pointer;
  damaged_blocks += other.damaged_blocks;
}

absl::StatusOr<UnwindCounts> UnwindStacks(recording::Recording& recording,
                                          const RecordedProcesses& processes,
                                          symbolizer::ProcessImages& images) {
  SharedCode code(images);
  Workers workers(code, processes);
  UnwindCounts counts;
  for (size_t i = 0; i < recording.info().sources.size(); ++i) {
    if (!recording.info().sources[i].stacks) continue;
    XENOSCOPE_ASSIGN_OR_RETURN(const recording::SampleStream stream, recording.OpenSamples(i));
    XENOSCOPE_ASSIGN_OR_RETURN(recording::TemporaryFile out, recording::TemporaryFile::Create());
    XENOSCOPE_ASSIGN_OR_RETURN(const UnwindCounts of_source,
                               Rewriter(stream.file.bytes(), workers, out).Run());
    counts.Add(of_source);
    recording.ReplaceSamples(i, std::move(out));
  }
  return counts;
}

}  // namespace xenoscope::profile
