// Compares the callers that reports find for stacks of a recording with those of elfutils' libdwfl:
//
//   unwind_against_libdw RECORDING [NAME [ROOT [SOURCE]]]
//
// Takes the samples with stacks of SOURCE (perf, agent-1; default: the first that has any), of
// processes with this name (default: all), and prints for each name how many of their chains
//   same       have the same addresses to the end
//   longer     go on where libdwfl's end: code without a table, left by its frame pointer
//   marked     end with a mark where libdwfl's go on
//   different  have another address in the same place; the first such chain is printed
// Where a signal or the kernel interrupted the program, reports have the address after that of the
// instruction, since callers are looked up one before. libdwfl takes any file at the path, reports
// only the one that ran: what was replaced since differs. ROOT has the files of the machine
// (default /). Exits 1 if a chain is different.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/user_registers.h"
#include "profile/recorded_processes.h"
#include "profile/unwound_samples.h"
#include "recording/chunk_reader.h"
#include "recording/process_reader.h"
#include "recording/recording.h"
#include "recording/stack_block.h"
#include "symbolizer/load.h"
#include "tests/bench/libdw_session.h"

namespace xenoscope {
namespace {

using recording::ChunkKind;

// A recorded sample; `stack` is nothing where it has none.
struct Entry {
  DomainId domain;
  Tsc begin;
  uint32_t pid = 0;
  bool in_kernel = false;
  std::optional<StackSample> stack;
  std::vector<Address> user_callers;
};

absl::StatusOr<std::vector<Entry>> ReadEntries(recording::ChunkReader reader) {
  std::vector<Entry> read;
  recording::ReadStackBlock block;
  while (const auto chunk = reader.Next()) {
    if (chunk->header.kind == ChunkKind::kStacks) XENOSCOPE_RETURN_IF_ERROR(block.Read(*chunk));
    if (chunk->header.kind != ChunkKind::kTimed) continue;
    Bytes entries = chunk->entries;
    for (uint32_t i = 0; i < chunk->header.items; ++i) {
      const auto entry = Load<recording::TimedEntry>(entries, 0);
      if (!entry || entry->size < sizeof *entry) return InvalidError("a damaged chunk");
      Entry& of = read.emplace_back();
      of.domain = DomainId{static_cast<uint16_t>(chunk->header.domain)};
      of.begin = Tsc{entry->begin};
      of.pid = entry->pid;
      of.in_kernel = entry->mode != static_cast<uint8_t>(Mode::kUser);
      const auto at = Load<recording::StackEntry>(entries, sizeof *entry);
      const bool has_stack = at && entry->size >= sizeof *entry + sizeof *at;
      if (const auto stack = has_stack ? block.At(*at) : std::nullopt) {
        of.stack = {entry->pid, stack->registers, {stack->bytes.begin(), stack->bytes.end()}};
      }
      const uint64_t inner = uint64_t{entry->xen_callers} + entry->kernel_callers;
      for (uint64_t caller = inner; caller < inner + entry->user_callers; ++caller) {
        const auto address = Load<Address>(entries, entry->size + caller * sizeof(Address));
        if (!address) return InvalidError("a damaged chunk");
        of.user_callers.push_back(*address);
      }
      entries = entries.subspan(entry->size + (inner + entry->user_callers) * sizeof(Address));
    }
  }
  return read;
}

struct Comparison {
  uint64_t same = 0;
  uint64_t longer = 0;
  uint64_t marked = 0;
  uint64_t different = 0;
  std::string first;  // the first different chain
};

bool IsSame(Address ours, Address theirs) { return ours == theirs || ours == theirs + 1; }

// Adds the chain of a program at `rip`, innermost first, both without that.
void Compare(Address rip, std::vector<Address> ours, std::vector<Address> theirs,
             Comparison& sums) {
  const bool marked = !ours.empty() && ChainEndAt(ours.back()).has_value();
  if (marked) ours.pop_back();
  // The outermost has no caller; libdwfl sometimes goes on behind it.
  theirs.erase(std::ranges::find(theirs, Address{0}), theirs.end());
  const auto [at, there] = std::ranges::mismatch(ours, theirs, IsSame);
  const bool ours_ended = at == ours.end();
  const bool theirs_ended = there == theirs.end();
  if (ours_ended && theirs_ended) {
    ++sums.same;
  } else if (theirs_ended) {
    ++sums.longer;
  } else if (ours_ended && marked) {
    ++sums.marked;
  } else if (sums.different++ == 0) {
    sums.first = fmt::format("at {:#x}\n  ours    {:#x}\n  libdwfl {:#x}", rip,
                             fmt::join(ours, " "), fmt::join(theirs, " "));
  }
}

absl::StatusOr<size_t> SourceWithStacks(const recording::Recording& recording,
                                        const std::string& name) {
  const auto& sources = recording.info().sources;
  for (size_t source = 0; source < sources.size(); ++source) {
    if (!sources[source].stacks || sources[source].name == "vcpu") continue;
    if (name.empty() || sources[source].name == name) return source;
  }
  return NotFoundError("{}: no sample has a stack", recording.path());
}

absl::StatusOr<bool> CompareAll(const std::string& path, const std::string& name,
                                const std::string& root, const std::string& source_name) {
  XENOSCOPE_ASSIGN_OR_RETURN(auto recording, recording::Recording::Open(path));
  XENOSCOPE_ASSIGN_OR_RETURN(const size_t source, SourceWithStacks(recording, source_name));
  symbolizer::SymbolSources sources = symbolizer::SourcesInRecording(path);
  sources.roots = {{symbolizer::kEveryDomain, root}};
  XENOSCOPE_ASSIGN_OR_RETURN(const auto symbols, symbolizer::LoadSymbols(sources));
  XENOSCOPE_ASSIGN_OR_RETURN(const auto processes, profile::RecordedProcesses::Read(recording));
  processes.ExportTo(symbols.resolver->processes());

  XENOSCOPE_ASSIGN_OR_RETURN(const auto before, recording.OpenSamples(source));
  XENOSCOPE_ASSIGN_OR_RETURN(auto maps, recording::ProcessReader::Open(before.file.bytes()));
  MapsOfProcesses files = ReadMaps(maps);
  for (auto& [pid, mapped] : files) {
    for (Mapped& file : mapped) file.path = root == "/" ? file.path : root + file.path;
  }
  XENOSCOPE_ASSIGN_OR_RETURN(auto chunks, recording::ChunkReader::Open(before.file.bytes()));
  XENOSCOPE_ASSIGN_OR_RETURN(const auto recorded, ReadEntries(chunks));
  XENOSCOPE_RETURN_IF_ERROR(
      profile::UnwindStacks(recording, processes, *symbols.resolver).status());
  XENOSCOPE_ASSIGN_OR_RETURN(const auto after, recording.OpenSamples(source));
  XENOSCOPE_ASSIGN_OR_RETURN(auto rewritten, recording::ChunkReader::Open(after.file.bytes()));
  XENOSCOPE_ASSIGN_OR_RETURN(const auto unwound, ReadEntries(rewritten));
  if (unwound.size() != recorded.size()) return InternalError("samples were lost");

  std::map<std::string, Comparison> sums;
  std::map<uint32_t, LibdwSession> sessions;
  for (size_t i = 0; i < recorded.size(); ++i) {
    const Entry& entry = recorded[i];
    if (!entry.stack) continue;
    // What the process had mapped last: one that executed another program since is left out.
    const AddressSpaceId space = processes.SpaceOf(entry.domain, entry.pid, entry.begin);
    if (space.value != processes.SpaceOf(entry.domain, entry.pid, Tsc{~uint64_t{0}}).value)
      continue;
    std::vector<Address> theirs =
        sessions.try_emplace(entry.pid, files[entry.pid]).first->second.Unwind(*entry.stack);
    std::vector<Address> ours = unwound[i].user_callers;
    // Of a sample in the kernel, the instruction in user mode is a caller.
    const Address rip = entry.stack->registers[kRip];
    if (!theirs.empty()) theirs.erase(theirs.begin());
    if (!ours.empty() && entry.in_kernel && IsSame(ours.front(), rip)) ours.erase(ours.begin());
    const std::string named = processes.NameOf(space);
    const std::string process = named.substr(0, named.rfind(" ("));
    if (name.empty() || process == name) {
      Compare(rip, std::move(ours), std::move(theirs), sums[process]);
    }
  }
  bool good = true;
  for (const auto& [process, of] : sums) {
    fmt::print("{}: {} same, {} longer, {} marked, {} different\n", process, of.same, of.longer,
               of.marked, of.different);
    if (of.different > 0) fmt::print("  {}\n", of.first);
    good = good && of.different == 0;
  }
  return good;
}

}  // namespace
}  // namespace xenoscope

int main(int argc, char** argv) {
  if (argc < 2 || argc > 5) {
    fmt::print(stderr, "usage: unwind_against_libdw RECORDING [NAME [ROOT [SOURCE]]]\n");
    return 2;
  }
  const auto argument = [&](int at, const char* otherwise) {
    return std::string(argc > at ? argv[at] : otherwise);
  };
  const auto good =
      xenoscope::CompareAll(argv[1], argument(2, ""), argument(3, "/"), argument(4, ""));
  if (!good.ok()) {
    fmt::print(stderr, "unwind_against_libdw: {}\n", xenoscope::Message(good.status()));
    return 2;
  }
  return *good ? 0 : 1;
}
