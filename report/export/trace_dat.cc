#include "report/export/trace_dat.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/mapped_file.h"

namespace xenoscope::report {
namespace {

constexpr size_t kPageHead = 16;  // the time of the first event, the number of bytes that follow
constexpr size_t kPageData = TraceDat::kPageSize - kPageHead;
constexpr uint32_t kLostFlag = 1U << 31;  // RB_MISSED_EVENTS
constexpr size_t kWord = sizeof(uint32_t);
constexpr size_t kLongestInType = 28 * kWord;  // longer events have a word with their length
constexpr uint32_t kDeltaBits = 27;
constexpr uint64_t kDeltaMask = (uint64_t{1} << kDeltaBits) - 1;
constexpr uint32_t kTypeBits = 5;
constexpr uint32_t kTimeExtend = 30;

constexpr std::string_view kHeaderPage =
    "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n"
    "\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
    "\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n"
    "\tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
constexpr std::string_view kHeaderEvent =
    "# compressed entry header\n"
    "\ttype_len    :    5 bits\n"
    "\ttime_delta  :   27 bits\n"
    "\tarray       :   32 bits\n"
    "\n"
    "\tpadding     : type == 29\n"
    "\ttime_extend : type == 30\n"
    "\ttime_stamp : type == 31\n"
    "\tdata max type_len  == 28\n";

// Options of the file.
enum Option : uint16_t { kDone = 0, kTraceId = 11, kGuest = 13 };

template <typename T>
void Put(std::string& to, T value) {
  std::array<char, sizeof(T)> bytes{};
  std::memcpy(bytes.data(), &value, sizeof(T));
  to.append(bytes.data(), bytes.size());
}

void PutText(std::string& to, std::string_view text) {
  to.append(text);
  to.push_back('\0');
}

void PutSized(std::string& to, std::string_view text) {
  Put(to, uint64_t{text.size()});
  to.append(text);
}

void PutText32(std::string& to, std::string_view text) {
  Put(to, static_cast<uint32_t>(text.size()));
  to.append(text);
}

void PutOption(std::string& to, Option option, std::string_view content) {
  Put(to, static_cast<uint16_t>(option));
  Put(to, static_cast<uint32_t>(content.size()));
  to.append(content);
}

void PutWord(std::vector<std::byte>& page, uint32_t word) {
  const auto bytes = std::as_bytes(std::span(&word, 1));
  page.insert(page.end(), bytes.begin(), bytes.end());
}

void PutFormats(std::string& to, const std::vector<TraceDatFormat>& formats) {
  std::map<std::string_view, std::vector<std::string_view>> systems;
  for (const TraceDatFormat& format : formats) systems[format.system].push_back(format.text);
  Put(to, uint32_t{0});  // none of ftrace's own events
  Put(to, static_cast<uint32_t>(systems.size()));
  for (const auto& [system, texts] : systems) {
    PutText(to, system);
    Put(to, static_cast<uint32_t>(texts.size()));
    for (const std::string_view text : texts) PutSized(to, text);
  }
}

void PutOptions(std::string& to, const TraceDatHead& head) {
  PutText(to, "options  ");
  std::string id;
  Put(id, head.id);
  PutOption(to, kTraceId, id);
  for (const TraceDatGuest& guest : head.guests) {
    std::string content;
    PutText(content, guest.name);
    Put(content, guest.id);
    Put(content, static_cast<uint32_t>(guest.threads.size()));
    for (uint32_t vcpu = 0; vcpu < guest.threads.size(); ++vcpu) {
      Put(content, vcpu);
      Put(content, guest.threads[vcpu]);
    }
    PutOption(to, kGuest, content);
  }
  Put(to, static_cast<uint16_t>(kDone));
}

// Returns what is before the pages' places.
std::string Begin(const TraceDatHead& head, size_t cpus) {
  std::string begin("\x17\x08\x44tracing");
  PutText(begin, "6");
  begin.push_back('\0');  // little-endian
  begin.push_back(sizeof(uint64_t));
  Put(begin, static_cast<uint32_t>(TraceDat::kPageSize));
  PutText(begin, "header_page");
  PutSized(begin, kHeaderPage);
  PutText(begin, "header_event");
  PutSized(begin, kHeaderEvent);
  PutFormats(begin, head.formats);
  PutText32(begin, head.kallsyms);
  Put(begin, uint32_t{0});  // no formats of trace_printk
  std::string threads;
  for (const auto& [tid, name] : head.threads) threads += fmt::format("{} {}\n", tid, name);
  PutSized(begin, threads);
  Put(begin, static_cast<uint32_t>(cpus));
  PutOptions(begin, head);
  PutText(begin, "flyrecord");
  return begin;
}

}  // namespace

absl::StatusOr<TraceDat> TraceDat::Create(size_t cpus) {
  XENOSCOPE_ASSIGN_OR_RETURN(recording::TemporaryFile file, recording::TemporaryFile::Create());
  return TraceDat(std::move(file), cpus);
}

absl::Status TraceDat::EndPage(Cpu& cpu) {
  if (cpu.page.empty()) return absl::OkStatus();
  auto commit = static_cast<uint32_t>(cpu.page.size() - kPageHead);
  if (std::exchange(cpu.lost, false)) commit |= kLostFlag;
  std::memcpy(cpu.page.data() + sizeof(uint64_t), &commit, sizeof(commit));
  cpu.page.resize(kPageSize);
  XENOSCOPE_RETURN_IF_ERROR(file_.Write(cpu.page));
  cpu.page.clear();
  cpu.numbers.push_back(pages_++);
  return absl::OkStatus();
}

TraceDat::Cpu& TraceDat::At(size_t cpu) {
  if (cpu >= cpus_.size()) cpus_.resize(cpu + 1);
  return cpus_[cpu];
}

absl::Status TraceDat::Lose(size_t cpu) {
  XENOSCOPE_RETURN_IF_ERROR(EndPage(At(cpu)));
  At(cpu).lost = true;
  return absl::OkStatus();
}

absl::Status TraceDat::Add(size_t cpu, uint64_t ns, Bytes event) {
  Cpu& to = At(cpu);
  const size_t words = (event.size() + kWord - 1) / kWord;
  const bool is_long = words * kWord > kLongestInType;
  const size_t size = (1 + (is_long ? 1 : 0) + words) * kWord;
  if (words == 0 || size > kPageData) {
    ++left_out_;
    return absl::OkStatus();
  }
  ns = std::max(ns, to.last_ns);
  const bool extends = ns - to.last_ns > kDeltaMask;
  if (to.page.size() + size + (extends ? 2 * kWord : 0) > kPageSize) {
    XENOSCOPE_RETURN_IF_ERROR(EndPage(to));
  }
  uint64_t delta = ns - std::exchange(to.last_ns, ns);
  if (to.page.empty()) {
    to.page.reserve(kPageSize);
    to.page.resize(kPageHead);
    std::memcpy(to.page.data(), &ns, sizeof(ns));
    delta = 0;
  }
  if (delta > kDeltaMask) {
    PutWord(to.page, kTimeExtend | static_cast<uint32_t>((delta & kDeltaMask) << kTypeBits));
    PutWord(to.page, static_cast<uint32_t>(delta >> kDeltaBits));
    delta = 0;
  }
  PutWord(to.page,
          (is_long ? 0 : static_cast<uint32_t>(words)) | static_cast<uint32_t>(delta << kTypeBits));
  if (is_long) PutWord(to.page, static_cast<uint32_t>((1 + words) * kWord));
  to.page.insert(to.page.end(), event.begin(), event.end());
  to.page.resize(to.page.size() + words * kWord - event.size());
  return absl::OkStatus();
}

absl::Status TraceDat::Write(const std::string& path, const TraceDatHead& head) {
  for (Cpu& cpu : cpus_) XENOSCOPE_RETURN_IF_ERROR(EndPage(cpu));
  std::string begin = Begin(head, cpus_.size());
  const size_t places = begin.size() + cpus_.size() * 2 * sizeof(uint64_t);
  uint64_t at = (places + kPageSize - 1) / kPageSize * kPageSize;
  for (const Cpu& cpu : cpus_) {
    const uint64_t bytes = cpu.numbers.size() * kPageSize;
    Put(begin, at);
    Put(begin, bytes);
    at += bytes;
  }
  begin.resize((begin.size() + kPageSize - 1) / kPageSize * kPageSize);
  const File file(open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file.is_open()) return ErrnoError(errno, "cannot write {}", path);
  int error = WriteAll(file.fd(), AsBytes(begin));
  if (pages_ > 0) {
    XENOSCOPE_ASSIGN_OR_RETURN(const MappedFile pages, MappedFile::Open(file_.path()));
    for (const Cpu& cpu : cpus_) {
      for (const uint32_t number : cpu.numbers) {
        if (error != 0) break;
        error = WriteAll(file.fd(), pages.bytes().subspan(number * kPageSize, kPageSize));
      }
    }
  }
  if (error != 0) return WriteError(error, fmt::format("cannot write {}", path));
  return absl::OkStatus();
}

}  // namespace xenoscope::report
