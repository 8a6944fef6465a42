// The events of a shutdown as a kernel's trace has them, which tests make.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "tests/unit/guests/ftrace/timed_page.h"

namespace xenoscope::guests {

inline constexpr uint16_t kProgramId = 320;
inline constexpr uint16_t kSignalId = 321;
inline constexpr uint16_t kRebootId = 322;

inline constexpr std::string_view kShutdownFormats =
    "# sched/sched_process_exec\n"
    "ID: 320\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n"
    "\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n"
    "\tfield:pid_t old_pid;\toffset:16;\tsize:4;\tsigned:1;\n"
    "# signal/signal_generate\n"
    "ID: 321\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\tfield:int sig;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:char comm[16];\toffset:20;\tsize:16;\tsigned:0;\n"
    "\tfield:pid_t pid;\toffset:36;\tsize:4;\tsigned:1;\n"
    "\tfield:int result;\toffset:44;\tsize:4;\tsigned:1;\n"
    "# syscalls/sys_enter_reboot\n"
    "ID: 322\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n"
    "\tfield:unsigned int cmd;\toffset:32;\tsize:8;\tsigned:0;\n";

inline constexpr uint32_t kPowerOff = 0x4321fedc;  // LINUX_REBOOT_CMD_POWER_OFF
inline constexpr uint32_t kCadOff = 0;             // LINUX_REBOOT_CMD_CAD_OFF
inline constexpr uint32_t kTerm = 15;
inline constexpr uint32_t kKill = 9;

// Builds a page by the times of its events, which ascend.
class ShutdownPage {
 public:
  explicit ShutdownPage(uint64_t tsc) : page_(tsc) {}

  ShutdownPage& Exec(uint64_t at, uint32_t thread, std::string_view file) {
    std::vector<std::byte> data = TimedPage::Data(kProgramId, thread, 60);
    TimedPage::PutText(data, 8, 20, file);
    TimedPage::Put(data, 12, thread);
    return Add(at, data);
  }
  ShutdownPage& Signal(uint64_t at, uint32_t sender, uint32_t to, uint32_t signal,
                       std::string_view name, bool ignored = false) {
    std::vector<std::byte> data = TimedPage::Data(kSignalId, sender, 48);
    TimedPage::Put(data, 8, signal);
    std::memcpy(data.data() + 20, name.data(), name.size());
    TimedPage::Put(data, 36, to);
    TimedPage::Put(data, 44, ignored ? 1 : 0);
    return Add(at, data);
  }
  ShutdownPage& Reboot(uint64_t at, uint32_t thread, uint32_t command) {
    std::vector<std::byte> data = TimedPage::Data(kRebootId, thread, 40);
    TimedPage::Put(data, 32, command);
    return Add(at, data);
  }
  ShutdownPage& Begin(uint64_t at, uint32_t parent, uint32_t thread, std::string_view name,
                      uint64_t flags = 0) {
    page_.page().NewTask(page_.Delta(at), parent, thread, name, flags);
    return *this;
  }
  ShutdownPage& Exit(uint64_t at, uint32_t thread) {
    page_.page().Exit(page_.Delta(at), thread);
    return *this;
  }
  [[nodiscard]] std::vector<std::byte> Page() const { return page_.Page(); }

 private:
  ShutdownPage& Add(uint64_t at, const std::vector<std::byte>& data) {
    page_.Add(at, data);
    return *this;
  }

  TimedPage page_;
};

}  // namespace xenoscope::guests
