#include "profile/unwound_samples.h"

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "base/error.h"
#include "base/parallel.h"
#include "recording/chunk_reader.h"
#include "recording/sample_writer.h"
#include "recording/stack_block.h"
#include "symbolizer/unwind/unwinder.h"

namespace xenoscope::profile {
namespace {

using recording::Chunk;
using recording::ChunkKind;
using recording::StackEntry;
using recording::TimedEntry;
using recording::UserStack;

// Returns whether a chunk of samples says which chunk has their stacks.
bool NamesStacks(const recording::ChunkHeader& header) { return header.vcpu != 0; }

// Limit of the stacks of one sample from which another one was entered; writers have at most three.
constexpr size_t kMaxOuterStacks = 4;

// Chunks that are unwound at a time, so that memory is bounded.
constexpr size_t kChunksAtATime = 64;

// The code of processes, for several threads.
class SharedCode final : public symbolizer::UnwindCodeSource {
 public:
  SharedCode(symbolizer::ProcessImages& images, std::mutex& mutex)
      : mutex_(mutex), images_(images) {}

  symbolizer::UnwindCode CodeAt(AddressSpaceId space, Address address) override {
    const std::lock_guard lock(mutex_);
    return images_.UnwindCodeAt(space, address);
  }

 private:
  std::mutex& mutex_;
  symbolizer::ProcessImages& images_;
};

// The code of programs of guests that were sampled from dom0, for several threads.
class SharedGuestPrograms final : public symbolizer::UnwindCodeSource {
 public:
  SharedGuestPrograms(symbolizer::DomainSymbols& symbols, std::mutex& mutex)
      : mutex_(mutex), symbols_(symbols) {}

  symbolizer::UnwindCode CodeAt(AddressSpaceId space, Address address) override {
    const std::lock_guard lock(mutex_);
    const std::optional<DomainId> domain = symbols_.processes().DomainOf(space);
    return symbols_.UserCodeAt(domain.value_or(DomainId{static_cast<uint16_t>(space.value)}), space,
                               address);
  }
  // Returns `known`, or a number that stands for the domain where that is none.
  static AddressSpaceId SpaceOf(DomainId domain, AddressSpaceId known) {
    return known.value != 0 ? known : AddressSpaceId{kFirstDomain + domain.value};
  }

 private:
  // No address space of a recording has such a number.
  static constexpr uint32_t kFirstDomain = 0xffff'0000;

  std::mutex& mutex_;
  symbolizer::DomainSymbols& symbols_;
};

// The code of guests' kernels, for several threads. The number of a space is that of the domain.
class SharedKernels final : public symbolizer::UnwindCodeSource {
 public:
  SharedKernels(symbolizer::DomainSymbols& symbols, std::mutex& mutex)
      : mutex_(mutex), symbols_(symbols) {}

  symbolizer::UnwindCode CodeAt(AddressSpaceId space, Address address) override {
    const std::lock_guard lock(mutex_);
    return symbols_.KernelCodeAt(DomainId{static_cast<uint16_t>(space.value)}, address);
  }
  // Returns why the domain's kernel cannot be unwound; empty: it can.
  const std::string& WhyNoOrc(DomainId domain) {
    const std::lock_guard lock(mutex_);
    const auto [known, is_new] = why_no_orc_.try_emplace(domain);
    if (is_new) known->second = symbols_.WhyNoOrc(domain);
    return known->second;
  }

 private:
  std::mutex& mutex_;
  symbolizer::DomainSymbols& symbols_;
  std::map<DomainId, std::string> why_no_orc_;
};

// All code.
struct Code {
  explicit Code(symbolizer::DomainSymbols& symbols)
      : processes(symbols.processes(), mutex),
        kernels(symbols, mutex),
        guest_programs(symbols, mutex) {}

  std::mutex mutex;  // one for all: they look up in the same symbols
  SharedCode processes;
  SharedKernels kernels;
  SharedGuestPrograms guest_programs;
};

// The samples of one chunk, and the chunk that has their stacks.
struct Work {
  // Returns whether they are of vCPUs that dom0 stopped, whose stacks are of the mode of the
  // sample.
  [[nodiscard]] bool IsStopped() const {
    return samples.header.kind == ChunkKind::kStoppedWithCallers;
  }

  Chunk samples;
  std::optional<Chunk> stacks;  // nothing: that is damaged
  uint64_t gap_begin = 0;  // bytes of the file before the samples that stay as they are, from here
  uint64_t gap_end = 0;    // to here
  std::vector<std::byte> unwound;
  UnwindCounts user;            // of chains in user mode
  KernelUnwindCounts kernel;    // of the domain's kernel
  UnwindCounts guest_programs;  // of chains in user mode of a domain that was sampled from dom0
};

// What a thread needs to unwind, and reuses.
class Worker {
 public:
  Worker(Code& code, const RecordedProcesses& processes)
      : unwinder_(code.processes),
        kernel_unwinder_(code.kernels),
        guest_unwinder_(code.guest_programs),
        kernels_(code.kernels),
        guest_programs_(code.guest_programs),
        processes_(processes) {}

  void Unwind(Work& work) {
    has_block_ = work.stacks && block_.Read(*work.stacks).ok();
    if (!has_block_ && NamesStacks(work.samples.header)) ++work.user.damaged_blocks;
    chunk_.Clear();
    Bytes entries = work.samples.entries;
    uint32_t left = work.samples.header.items;
    while (left > 0 && Take(entries, work)) --left;
    if (left > 0 || !entries.empty()) {
      // It is not as a writer leaves it: the reader of samples says what is wrong.
      work.user = {};
      work.kernel = {};
      work.guest_programs = {};
      return;
    }
    const DomainId domain{work.samples.header.domain};
    if (work.IsStopped()) {
      writer_.AppendStopped(domain, chunk_);
    } else {
      writer_.Append(domain, chunk_);
    }
    work.unwound = writer_.Take();
  }

 private:
  // Takes one sample off the entries. False: it is cut off.
  bool Take(Bytes& entries, Work& work) {
    const auto entry = Load<TimedEntry>(entries, 0);
    if (!entry || entry->size < sizeof *entry) return false;
    const uint64_t count =
        uint64_t{entry->xen_callers} + entry->kernel_callers + entry->user_callers;
    const auto callers = Slice(entries, entry->size, count * sizeof(Address));
    if (!callers) return false;
    const auto stack = entry->size < sizeof *entry + sizeof(StackEntry)
                           ? std::nullopt
                           : Load<StackEntry>(entries, sizeof *entry);
    ReadOuterStacks(entries.first(entry->size));
    entries = entries.subspan(entry->size + callers->size());
    callers_.clear();
    for (size_t i = 0; i < count; ++i) {
      callers_.push_back(LoadUnchecked<Address>(callers->data() + i * sizeof(Address)));
    }
    TimedEntry written = *entry;
    written.size = sizeof written;
    const DomainId domain{work.samples.header.domain};
    const bool in_user_mode = entry->mode == static_cast<uint8_t>(Mode::kUser);
    if (work.IsStopped()) {
      if (stack) SetCallersOfStopped(domain, *stack, written, work);
    } else {
      if (entry->user_callers == 0 && (stack || in_user_mode)) {
        AddUserCallers(domain, *entry, stack.value_or(StackEntry()), work.user);
      }
      written.user_callers =
          static_cast<uint16_t>(callers_.size() - entry->xen_callers - entry->kernel_callers);
    }
    chunk_.Add(written, callers_);
    return true;
  }

  // Sets outer_ to the other stacks of the sample with this TimedEntry and what belongs to it.
  void ReadOuterStacks(Bytes entry) {
    outer_.clear();
    using recording::OuterStackEntry;
    for (size_t at = sizeof(TimedEntry) + sizeof(StackEntry);
         has_block_ && outer_.size() < kMaxOuterStacks; at += sizeof(OuterStackEntry)) {
      const auto outer = Load<OuterStackEntry>(entry, at);
      if (!outer) return;
      if (const auto bytes = block_.OuterAt(*outer)) outer_.push_back({outer->address, *bytes});
    }
  }

  // Replaces the callers of a stopped vCPU, which were found by frame pointers, where there are
  // tables for its code. Sets the numbers of callers of `entry`.
  void SetCallersOfStopped(DomainId domain, const StackEntry& at, TimedEntry& entry, Work& work) {
    const std::optional<UserStack> stack = has_block_ ? block_.At(at) : std::nullopt;
    const AddressSpaceId program = SharedGuestPrograms::SpaceOf(
        domain, processes_.SpaceOf(domain, AddressSpaceId{entry.space}));
    if (entry.mode == static_cast<uint8_t>(Mode::kUser)) {
      if (stack && HasTable(program, stack->registers[kRip])) {
        callers_.clear();
        AddGuestCallers(program, stack->registers, {stack->registers[kRsp], stack->bytes},
                        work.guest_programs);
      } else if (!stack && callers_.empty() && HasTable(program, entry.address)) {
        Count({.end = ChainEnd::kNoStack}, 0, work.guest_programs);
      }
      entry.user_callers = static_cast<uint16_t>(callers_.size());
      return;
    }
    if (!kernels_.WhyNoOrc(domain).empty()) {
      ++work.kernel.by_frame_pointers;
      return;
    }
    callers_.clear();
    symbolizer::UnwoundChain chain{.end = ChainEnd::kNoStack};
    if (stack) {
      chain = kernel_unwinder_.Unwind(AddressSpaceId{domain.value}, stack->registers,
                                      {stack->registers[kRsp], stack->bytes, outer_}, callers_);
    }
    Count(chain, 0, work.kernel.by_orc);
    entry.kernel_callers = static_cast<uint16_t>(callers_.size());
    if (!chain.user || !HasTable(program, (*chain.user)[kRip])) return;
    // Where user mode was interrupted; callers are looked up one byte before.
    callers_.push_back((*chain.user)[kRip] + 1);
    AddGuestCallers(program, *chain.user, OuterPieceAt((*chain.user)[kRsp]), work.guest_programs);
    entry.user_callers = static_cast<uint16_t>(callers_.size() - entry.kernel_callers);
  }

  // Returns the outer stack that has this address; empty: none has it.
  [[nodiscard]] symbolizer::StackPiece OuterPieceAt(Address address) const {
    for (const symbolizer::StackPiece& piece : outer_) {
      if (piece.Contains(address)) return piece;
    }
    return {address, {}};
  }

  // Returns whether a file is known that has a table for the code at the address.
  bool HasTable(AddressSpaceId program, Address address) {
    return guest_programs_.CodeAt(program, address).table != nullptr;
  }

  // Adds the callers in user mode of a guest's program.
  void AddGuestCallers(AddressSpaceId program, const UserRegisters& registers,
                       const symbolizer::StackPiece& stack, UnwindCounts& counts) {
    const size_t before = callers_.size();
    const symbolizer::UnwoundChain chain =
        guest_unwinder_.Unwind(program, registers, stack, callers_);
    Count(chain, before, counts);
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
    Count(chain, before, counts);
  }

  // Counts a chain whose callers are those in callers_ from index `first` on, and says there why it
  // ends.
  void Count(const symbolizer::UnwoundChain& chain, size_t first, UnwindCounts& counts) {
    counts.callers += callers_.size() - first;
    counts.by_frame_pointer += chain.by_frame_pointer;
    ++counts.chains.at(static_cast<size_t>(chain.end));
    if (chain.end != ChainEnd::kOutermost) callers_.push_back(AddressOf(chain.end));
  }

  symbolizer::Unwinder unwinder_;
  symbolizer::Unwinder kernel_unwinder_;
  symbolizer::Unwinder guest_unwinder_;
  SharedKernels& kernels_;
  SharedGuestPrograms& guest_programs_;
  const RecordedProcesses& processes_;
  recording::ReadStackBlock block_;
  bool has_block_ = false;
  absl::InlinedVector<symbolizer::StackPiece, kMaxOuterStacks> outer_;
  std::vector<Address> callers_;
  recording::TimedChunk chunk_;
  recording::SampleWriter writer_ = recording::SampleWriter::InMemory();
};

// Workers that are not at work.
class Workers {
 public:
  Workers(Code& code, const RecordedProcesses& processes) : code_(code), processes_(processes) {}

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

  Code& code_;
  const RecordedProcesses& processes_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Worker>> idle_;
};

// Rewrites the file of one source: chunks of samples with stacks become such with callers, and all
// else stays, damage included.
class Rewriter {
 public:
  // Adds to `results`.
  Rewriter(Bytes file, Workers& workers, recording::TemporaryFile& out, UnwindResults& results)
      : file_(file), workers_(workers), out_(out), results_(results) {}

  absl::Status Run() {
    XENOSCOPE_ASSIGN_OR_RETURN(recording::ChunkReader chunks, recording::ChunkReader::Open(file_));
    while (const std::optional<Chunk> chunk = chunks.Next()) {
      const bool is_stacks = chunk->header.kind == ChunkKind::kStacks;
      if (!is_stacks && !IsUnwound(chunk->header)) continue;
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
    return Flush();
  }

 private:
  // Returns whether a chunk's samples are to have other callers than it has.
  static bool IsUnwound(const recording::ChunkHeader& header) {
    return header.kind == ChunkKind::kStoppedWithCallers ||
           (header.kind == ChunkKind::kTimed && NamesStacks(header));
  }
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
    ForEachInParallel(works_.size(), 1, [this](size_t i) {
      if (works_[i].samples.header.items > 0) workers_.Unwind(works_[i]);
    });
    for (Work& work : works_) {
      results_.user.Add(work.user);
      results_.guest_programs.Add(work.guest_programs);
      AddKernel(work);
      XENOSCOPE_RETURN_IF_ERROR(out_.Write(
          work.unwound.empty() ? file_.subspan(work.gap_begin, work.gap_end - work.gap_begin)
                               : Bytes(work.unwound)));
    }
    works_.clear();
    return absl::OkStatus();
  }

  void AddKernel(const Work& work) {
    if (work.kernel.by_orc.Chains() + work.kernel.by_frame_pointers == 0) return;
    KernelUnwindCounts& kernel = results_.kernels[DomainId{work.samples.header.domain}];
    kernel.by_orc.Add(work.kernel.by_orc);
    kernel.by_frame_pointers += work.kernel.by_frame_pointers;
  }

  Bytes file_;
  Workers& workers_;
  recording::TemporaryFile& out_;
  uint64_t rest_begin_ = 0;
  std::optional<Chunk> stacks_;
  std::vector<Work> works_;
  UnwindResults& results_;
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

absl::StatusOr<UnwindResults> UnwindStacks(recording::Recording& recording,
                                           const RecordedProcesses& processes,
                                           symbolizer::DomainSymbols& symbols) {
  Code code(symbols);
  Workers workers(code, processes);
  UnwindResults results;
  for (size_t i = 0; i < recording.info().sources.size(); ++i) {
    if (!recording.info().sources[i].stacks) continue;
    XENOSCOPE_ASSIGN_OR_RETURN(const recording::SampleStream stream, recording.OpenSamples(i));
    XENOSCOPE_ASSIGN_OR_RETURN(recording::TemporaryFile out, recording::TemporaryFile::Create());
    XENOSCOPE_RETURN_IF_ERROR(Rewriter(stream.file.bytes(), workers, out, results).Run());
    recording.ReplaceSamples(i, std::move(out));
  }
  for (auto& [domain, kernel] : results.kernels) {
    kernel.why_no_orc = code.kernels.WhyNoOrc(domain);
    kernel.modules_without_orc = symbols.modules().Missing(domain);
  }
  return results;
}

}  // namespace xenoscope::profile
