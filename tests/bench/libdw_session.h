// libdwfl's view of one process of a recording, whose stacks it unwinds: for scripts/bench unwind
// and the test that compares chains.
#pragma once

#include <elfutils/libdwfl.h>
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/user_registers.h"
#include "recording/process_reader.h"

namespace xenoscope {

// A file that a process maps.
struct Mapped {
  Address begin = 0;
  Address end = 0;
  Address base = 0;  // where the file's first byte would be
  std::string path;
};

using MapsOfProcesses = std::map<uint32_t, std::vector<Mapped>>;  // by the process's number

// A stack of a process.
struct StackSample {
  uint32_t pid = 0;
  UserRegisters registers{};
  std::vector<std::byte> bytes;
};

inline MapsOfProcesses ReadMaps(recording::ProcessReader reader) {
  using recording::ProcessEntryType;
  MapsOfProcesses processes;
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

class LibdwSession {
 public:
  static constexpr size_t kMostFrames = 127;

  explicit LibdwSession(const std::vector<Mapped>& maps)
      : maps_(maps), dwfl_(dwfl_begin(&kCallbacks), dwfl_end) {}
  LibdwSession(const LibdwSession&) = delete;
  LibdwSession& operator=(const LibdwSession&) = delete;

  // Returns the addresses of the frames, innermost first: the instruction, then return addresses.
  // Valid until the next call.
  const std::vector<Address>& Unwind(const StackSample& sample) {
    sample_ = &sample;
    frames_.clear();
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

  static pid_t NextThread(Dwfl* /*dwfl*/, void* self, void** thread) {
    if (*thread != nullptr) return 0;
    *thread = self;
    return kThread;
  }
  static bool Read(Dwfl* /*dwfl*/, Dwarf_Addr at, Dwarf_Word* value, void* self) {
    const StackSample& sample = *static_cast<LibdwSession*>(self)->sample_;
    const auto word = Load<uint64_t>(sample.bytes, at - sample.registers[kRsp]);
    *value = word.value_or(0);
    return word.has_value();
  }
  static bool SetRegisters(Dwfl_Thread* thread, void* self) {
    const UserRegisters& registers = static_cast<LibdwSession*>(self)->sample_->registers;
    dwfl_thread_state_register_pc(thread, registers[kRip]);
    return dwfl_thread_state_registers(thread, 0, kUserRegisters, registers.data());
  }
  static int Frame(Dwfl_Frame* frame, void* self) {
    Dwarf_Addr pc = 0;
    if (!dwfl_frame_pc(frame, &pc, nullptr)) return DWARF_CB_ABORT;
    auto& session = *static_cast<LibdwSession*>(self);
    session.Report(pc);
    session.frames_.push_back(pc);
    return session.frames_.size() < kMostFrames ? DWARF_CB_OK : DWARF_CB_ABORT;
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
  const StackSample* sample_ = nullptr;
  std::vector<Address> frames_;
};

}  // namespace xenoscope
