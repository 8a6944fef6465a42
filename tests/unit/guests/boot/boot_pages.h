// The events of a boot as a kernel's trace has them, which tests make.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tests/unit/guests/ftrace/timed_page.h"

namespace xenoscope::guests {

inline constexpr uint16_t kLevelId = 310;
inline constexpr uint16_t kStartId = 311;
inline constexpr uint16_t kFinishId = 312;
inline constexpr uint16_t kExecId = 313;

inline constexpr std::string_view kBootFormats =
    "# initcall/initcall_level\n"
    "ID: 310\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\tfield:__data_loc char[] level;\toffset:8;\tsize:4;\tsigned:0;\n"
    "# initcall/initcall_start\n"
    "ID: 311\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\tfield:initcall_t func;\toffset:8;\tsize:8;\tsigned:0;\n"
    "# initcall/initcall_finish\n"
    "ID: 312\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\tfield:initcall_t func;\toffset:8;\tsize:8;\tsigned:0;\n"
    "\tfield:int ret;\toffset:16;\tsize:4;\tsigned:1;\n"
    "# sched/sched_process_exec\n"
    "ID: 313\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\tfield:__data_loc char[] filename;\toffset:8;\tsize:4;\tsigned:0;\n"
    "\tfield:pid_t pid;\toffset:12;\tsize:4;\tsigned:1;\n"
    "\tfield:pid_t old_pid;\toffset:16;\tsize:4;\tsigned:1;\n";

// Builds a page by the times of its events, which ascend.
class BootPage {
 public:
  explicit BootPage(uint64_t tsc) : page_(tsc) {}

  BootPage& Level(uint64_t at, uint32_t thread, std::string_view level) {
    std::vector<std::byte> data = TimedPage::Data(kLevelId, thread, 32);
    TimedPage::PutText(data, 8, 12, level);
    return Add(at, data);
  }
  BootPage& Start(uint64_t at, uint32_t thread, uint64_t function) {
    std::vector<std::byte> data = TimedPage::Data(kStartId, thread, 16);
    TimedPage::Put(data, 8, function);
    return Add(at, data);
  }
  BootPage& Finish(uint64_t at, uint32_t thread, uint64_t function, int32_t result = 0) {
    std::vector<std::byte> data = TimedPage::Data(kFinishId, thread, 20);
    TimedPage::Put(data, 8, function);
    TimedPage::Put(data, 16, result);
    return Add(at, data);
  }
  BootPage& Call(uint64_t at, uint64_t until, uint64_t function) {
    return Start(at, 1, function).Finish(until, 1, function);
  }
  BootPage& Exec(uint64_t at, uint32_t thread, std::string_view file) {
    std::vector<std::byte> data = TimedPage::Data(kExecId, thread, 48);
    TimedPage::PutText(data, 8, 20, file);
    TimedPage::Put(data, 12, thread);
    return Add(at, data);
  }
  BootPage& Switch(uint64_t at, uint32_t from, uint32_t to) {
    page_.page().Switch(page_.Delta(at), from, 0, to, "");
    return *this;
  }
  [[nodiscard]] std::vector<std::byte> Page(bool is_lossy = false) const {
    return page_.Page(is_lossy);
  }

 private:
  BootPage& Add(uint64_t at, const std::vector<std::byte>& data) {
    page_.Add(at, data);
    return *this;
  }

  TimedPage page_;
};

}  // namespace xenoscope::guests
