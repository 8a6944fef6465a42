// Unwinds the stacks of a recording by elfutils' libdwfl, as perf does that is built with libdw:
//
//   unwind_by_libdw RECORDING [SAMPLES]
//
// Takes the first SAMPLES (20000) samples with stacks. Prints their number, the number of their
// frames, and the processor time for each sample in us, in two ways: with a session of libdwfl for
// each sample, to which a file is given when a frame is in it (as in perf,
// tools/perf/util/unwind-libdw.c), and with one session for each process, in a second pass.
// scripts/bench unwind prints both beside its other rows.
#include <elfutils/libdwfl.h>
#include <fmt/format.h>
#include <sys/types.h>

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

namespace xenoscope {
namespace {

using recording::ChunkKind;
using recording::ProcessEntryType;

struct Mapped {
  Address begin = 0;
  Address end = 0;
  Address base = 0;  // where the file's first byte would be
  std::string path;
};

using Processes = std::map<uint32_t, std::vector<Mapped>>;  // what each process maps, by its number

// A stack of a process.
struct Sample {
  uint32_t pid = 0;
  UserRegisters registers{};
  std::vector<std::byte> bytes;
};

Processes ReadProcesses(recording::ProcessReader reader) {
  Processes processes;
  while (const auto record = reader.Next()) {
    std::vector<Mapped>& maps = processes[record->pid];
    if (record->type == ProcessEntryType::kName && record->by_exec) maps.clear();
    if (record->type == ProcessEntryType::kFork && record->pid != record->parent) {
      maps = processes[record->parent];
    }
    if (record->type == ProcessEntryType::kMap && record->text.starts_with('/')) {
      maps.push_back({record->map.begin, record->map.end, record->map.begin - record->map.offset,
                      std::string(record->text)});
    }
  }
  return processes;
}

absl::StatusOr<std::vector<Sample>> ReadSamples(recording::ChunkReader reader, size_t most) {
  std::vector<Sample> samples;
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

// libdwfl's view of one process.
class Session {
 public:
  explicit Session(const std::vector<Mapped>& maps)
      : maps_(maps), dwfl_(dwfl_begin(&kCallbacks), dwfl_end) {}
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Returns the number of frames.
  uint64_t Unwind(const Sample& sample) {
    sample_ = &sample;
    frames_ = 0;
    Report(sample.registers[kRip]);
    if (!attached_) {
      attached_ = dwfl_attach_state(dwfl_.get(), nullptr, kThread, &kThreads, this);
    }
    if (attached_) dwfl_getthread_frames(dwfl_.get(), kThread, Frame, this);
    return frames_;
  }

 private:
  // Gives libdwfl the file that is mapped at the address.
  void Report(Address pc) {
    if (dwfl_addrmodule(dwfl_.get(), pc) != nullptr) return;
    for (const Mapped& map : maps_) {
      if (pc < map.begin || pc >= map.end) continue;
      const char* const path = map.path.c_str();
      dwfl_report_elf(dwfl_.get(), path, path, -1, map.base, false);
      return;
    }
  }

  static constexpr pid_t kThread = 1;  // any number: there is no such process
  static constexpr uint64_t kMostFrames = 127;

  static pid_t NextThread(Dwfl* /*dwfl*/, void* self, void** thread) {
    if (*thread != nullptr) return 0;
    *thread = self;
    return kThread;
  }
  static bool Read(Dwfl* /*dwfl*/, Dwarf_Addr at, Dwarf_Word* value, void* self) {
    const Sample& sample = *static_cast<Session*>(self)->sample_;
    const auto word = Load<uint64_t>(sample.bytes, at - sample.registers[kRsp]);
    *value = word.value_or(0);
    return word.has_value();
  }
  static bool SetRegisters(Dwfl_Thread* thread, void* self) {
    const UserRegisters& registers = static_cast<Session*>(self)->sample_->registers;
    dwfl_thread_state_register_pc(thread, registers[kRip]);
    return dwfl_thread_state_registers(thread, 0, kUserRegisters, registers.data());
  }
  static int Frame(Dwfl_Frame* frame, void* self) {
    Dwarf_Addr pc = 0;
    if (!dwfl_frame_pc(frame, &pc, nullptr)) return DWARF_CB_ABORT;
    auto& session = *static_cast<Session*>(self);
    session.Report(pc);
    return ++session.frames_ < kMostFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
  }

  inline static char* no_debug_files = nullptr;
  static constexpr Dwfl_Callbacks kCallbacks = {.find_elf = dwfl_build_id_find_elf,
                                                .find_debuginfo = dwfl_standard_find_debuginfo,
                                                .section_address = nullptr,
                                                .debuginfo_path = &no_debug_files};
  static constexpr Dwfl_Thread_Callbacks kThreads = {.next_thread = NextThread,
                                                     .get_thread = nullptr,
                                                     .memory_read = Read,
                                                     .set_initial_registers = SetRegisters,
                                                     .detach = nullptr,
                                                     .thread_detach = nullptr};
  const std::vector<Mapped>& maps_;
  std::unique_ptr<Dwfl, decltype(&dwfl_end)> dwfl_;
  bool attached_ = false;
  const Sample* sample_ = nullptr;
  uint64_t frames_ = 0;
};

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
  const Processes processes = ReadProcesses(std::move(processes_reader));
  XENOSCOPE_ASSIGN_OR_RETURN(const auto samples, ReadSamples(std::move(chunks), most));
  if (samples.empty()) return NotFoundError("{}: no sample has a stack", path);
  const std::vector<Mapped> nothing;
  // Calls unwind(Sample, maps), which returns the number of frames, for each sample.
  const auto pass = [&](auto unwind) {
    const double begun = ProcessorSeconds();
    uint64_t frames = 0;
    for (const Sample& sample : samples) {
      const auto maps = processes.find(sample.pid);
      frames += unwind(sample, maps == processes.end() ? nothing : maps->second);
    }
    const auto count = static_cast<double>(samples.size());
    return std::pair{frames, 1e6 * (ProcessorSeconds() - begun) / count};
  };
  const auto one_each = pass([](const Sample& sample, const std::vector<Mapped>& maps) {
    return Session(maps).Unwind(sample);
  });
  std::map<uint32_t, Session> sessions;
  const auto of_process = [&](const Sample& sample, const std::vector<Mapped>& maps) {
    return sessions.try_emplace(sample.pid, maps).first->second.Unwind(sample);
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
