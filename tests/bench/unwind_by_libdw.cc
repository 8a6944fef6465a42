// Unwinds the stacks of a recording by elfutils' libdwfl, as perf does that is built with libdw:
//
//   unwind_by_libdw RECORDING [SAMPLES]
//
// Takes the first SAMPLES (20000) samples with stacks. Prints their number, the number of their
// frames, and the processor time for each sample in us, in two ways: with a session of libdwfl for
// each sample, to which a file is given when a frame is in it (as in perf,
// tools/perf/util/unwind-libdw.c), and with one session for each process, in a second pass.
// scripts/bench unwind prints both beside its other rows.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/user_registers.h"
#include "recording/chunk_reader.h"
#include "recording/process_reader.h"
#include "recording/recording.h"
#include "recording/stack_block.h"
#include "tests/bench/libdw_session.h"

namespace xenoscope {
namespace {

using recording::ChunkKind;

absl::StatusOr<std::vector<StackSample>> ReadSamples(recording::ChunkReader reader, size_t most) {
  std::vector<StackSample> samples;
  recording::ReadStackBlock block;
  while (const auto chunk = reader.Next()) {
    if (chunk->header.kind == ChunkKind::kStacks) XENOSCOPE_RETURN_IF_ERROR(block.Read(*chunk));
    if (chunk->header.kind != ChunkKind::kTimed || chunk->header.vcpu == 0) continue;
    Bytes entries = chunk->entries;
    for (uint32_t i = 0; i < chunk->header.items && samples.size() < most; ++i) {
      const auto entry = Load<recording::TimedEntry>(entries, 0);
      if (!entry || entry->size < sizeof *entry) break;
      const auto at = Load<recording::StackEntry>(entries, sizeof *entry);
      const uint64_t callers =
          uint64_t{entry->xen_callers} + entry->kernel_callers + entry->user_callers;
      const bool has_stack = at && entry->size >= sizeof *entry + sizeof *at;
      const auto stack = has_stack ? block.At(*at) : std::nullopt;
      if (stack) {
        samples.push_back(
            {entry->pid, stack->registers, {stack->bytes.begin(), stack->bytes.end()}});
      }
      const uint64_t size = entry->size + callers * sizeof(Address);
      if (size > entries.size()) break;
      entries = entries.subspan(size);
    }
  }
  return samples;
}

double ProcessorSeconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

absl::Status Measure(const std::string& path, size_t most) {
  XENOSCOPE_ASSIGN_OR_RETURN(const auto recording, recording::Recording::Open(path));
  XENOSCOPE_ASSIGN_OR_RETURN(const auto stream, recording.OpenSamples(0));
  const Bytes file = stream.file.bytes();
  XENOSCOPE_ASSIGN_OR_RETURN(auto processes_reader, recording::ProcessReader::Open(file));
  XENOSCOPE_ASSIGN_OR_RETURN(auto chunks, recording::ChunkReader::Open(file));
  const MapsOfProcesses processes = ReadMaps(processes_reader);
  XENOSCOPE_ASSIGN_OR_RETURN(const auto samples, ReadSamples(chunks, most));
  if (samples.empty()) return NotFoundError("{}: no sample has a stack", path);
  const std::vector<Mapped> nothing;
  // Calls unwind(Sample, maps), which returns the number of frames, for each sample.
  const auto pass = [&](auto unwind) {
    const double begun = ProcessorSeconds();
    uint64_t frames = 0;
    for (const StackSample& sample : samples) {
      const auto maps = processes.find(sample.pid);
      frames += unwind(sample, maps == processes.end() ? nothing : maps->second);
    }
    const auto count = static_cast<double>(samples.size());
    return std::pair{frames, 1e6 * (ProcessorSeconds() - begun) / count};
  };
  const auto one_each = pass([](const StackSample& sample, const std::vector<Mapped>& maps) {
    return LibdwSession(maps).Unwind(sample).size();
  });
  std::map<uint32_t, LibdwSession> sessions;
  const auto of_process = [&](const StackSample& sample, const std::vector<Mapped>& maps) {
    return sessions.try_emplace(sample.pid, maps).first->second.Unwind(sample).size();
  };
  pass(of_process);  // reads what the next one needs
  const auto one_for_process = pass(of_process);
  fmt::print("{} {} {:.2f} {:.2f}\n", samples.size(), one_each.first, one_each.second,
             one_for_process.second);
  return absl::OkStatus();
}

}  // namespace
}  // namespace xenoscope

int main(int argc, char** argv) {
  size_t most = 20000;
  if (argc == 3) {
    const std::string_view text = argv[2];
    std::from_chars(text.data(), text.data() + text.size(), most);
  }
  if (argc < 2 || argc > 3 || most == 0) {
    fmt::print(stderr, "usage: unwind_by_libdw RECORDING [SAMPLES]\n");
    return 2;
  }
  const absl::Status status = xenoscope::Measure(argv[1], most);
  if (!status.ok()) fmt::print(stderr, "unwind_by_libdw: {}\n", xenoscope::Message(status));
  return status.ok() ? 0 : 1;
}
