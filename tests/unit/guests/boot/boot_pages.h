// The events of a boot as a kernel's trace has them, which tests make.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "tests/unit/guests/ftrace/page_builder.h"

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
  explicit BootPage(uint64_t tsc) : page_(tsc), tsc_(tsc) {}

  BootPage& Level(uint64_t at, uint32_t thread, std::string_view level) {
    std::vector<std::byte> data = Data(kLevelId, thread, 32);
    PutText(data, 8, 12, level);
    return Add(at, data);
  }
  BootPage& Start(uint64_t at, uint32_t thread, uint64_t function) {
    std::vector<std::byte> data = Data(kStartId, thread, 16);
    std::memcpy(data.data() + 8, &function, sizeof function);
    return Add(at, data);
  }
  BootPage& Finish(uint64_t at, uint32_t thread, uint64_t function, int32_t result = 0) {
    std::vector<std::byte> data = Data(kFinishId, thread, 20);
    std::memcpy(data.data() + 8, &function, sizeof function);
    std::memcpy(data.data() + 16, &result, sizeof result);
    return Add(at, data);
  }
  BootPage& Call(uint64_t at, uint64_t until, uint64_t function) {
    return Start(at, 1, function).Finish(until, 1, function);
  }
  BootPage& Exec(uint64_t at, uint32_t thread, std::string_view file) {
    std::vector<std::byte> data = Data(kExecId, thread, 48);
    PutText(data, 8, 20, file);
    std::memcpy(data.data() + 12, &thread, sizeof thread);
    return Add(at, data);
  }
  BootPage& Switch(uint64_t at, uint32_t from, uint32_t to) {
    page_.Switch(Delta(at), from, 0, to, "");
    return *this;
  }
  [[nodiscard]] std::vector<std::byte> Page(bool is_lossy = false) const {
    return page_.Page(is_lossy);
  }

 private:
  static std::vector<std::byte> Data(uint16_t id, uint32_t thread, size_t size) {
    std::vector<std::byte> data(size);
    std::memcpy(data.data(), &id, sizeof id);
    std::memcpy(data.data() + 4, &thread, sizeof thread);
    return data;
  }
  static void PutText(std::vector<std::byte>& data, size_t place, uint32_t at,
                      std::string_view text) {
    const auto where = static_cast<uint32_t>(at | (text.size() + 1) << 16);
    std::memcpy(data.data() + place, &where, sizeof where);
    std::memcpy(data.data() + at, text.data(), text.size());
  }
  uint32_t Delta(uint64_t at) {
    const auto delta = static_cast<uint32_t>(at - tsc_);
    tsc_ = at;
    return delta;
  }
  BootPage& Add(uint64_t at, const std::vector<std::byte>& data) {
    page_.Event(Delta(at), data);
    return *this;
  }

  PageBuilder page_;
  uint64_t tsc_;
};

}  // namespace xenoscope::guests
