#include "sampler/ftrace/trace_instance.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "sampler/ftrace/event_list.h"
#include "sampler/small_file.h"

namespace xenoscope::sampler {
namespace {

namespace fs = std::filesystem;

constexpr const char* kClock = "x86-tsc";
constexpr const char* kFunctionFilter = "set_ftrace_filter";
// The events that tracers of functions write, which have no file by which to turn them on.
constexpr const char* kFunctionEvents[] = {"ftrace/funcgraph_entry", "ftrace/funcgraph_exit",
                                           "ftrace/function"};

// Returns the directories in `directory`, by name.
std::vector<std::string> Directories(const std::string& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    if (at->is_directory(error)) names.push_back(at->path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::vector<uint32_t> CpusIn(const std::string& directory) {
  constexpr std::string_view kCpu = "cpu";
  std::vector<uint32_t> cpus;
  for (const std::string& name : Directories(directory)) {
    uint32_t cpu = 0;
    if (name.starts_with(kCpu) && absl::SimpleAtoi(name.substr(kCpu.size()), &cpu)) {
      cpus.push_back(cpu);
    }
  }
  std::ranges::sort(cpus);
  return cpus;
}

// Returns the size of a page by the text of events/header_page: where its data end.
size_t PageSize(std::string_view header) {
  const auto value = [&header](std::string_view key) {
    const size_t at = header.find(key, std::min(header.find("char data;"), header.size()));
    size_t number = 0;
    if (at == std::string_view::npos) return number;
    const char* const begin = header.data() + at + key.size();
    std::from_chars(begin, header.data() + header.size(), number);
    return number;
  };
  const size_t size = value("size:");
  return size == 0 ? 0 : value("offset:") + size;
}

}  // namespace

std::optional<std::string> TraceInstance::FindTracefs() {
  for (const char* const path : {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"}) {
    if (access(fmt::format("{}/trace_clock", path).c_str(), F_OK) == 0) return path;
  }
  return std::nullopt;
}

absl::StatusOr<TraceInstance> TraceInstance::Create(const std::string& root,
                                                    const std::string& name, uint32_t buffer_kb) {
  const std::string path = fmt::format("{}/instances/{}", root, name);
  rmdir(path.c_str());  // what a killed process left
  if (mkdir(path.c_str(), 0700) != 0) return ErrnoError(errno, "cannot make {}", path);
  TraceInstance instance(root, path);
  if (const absl::Status status = instance.Write("trace_clock", kClock); !status.ok()) {
    return UnimplementedError("this Linux cannot trace by the TSC: {}", Message(status));
  }
  XENOSCOPE_RETURN_IF_ERROR(instance.Write("buffer_size_kb", fmt::format("{}", buffer_kb)));
  XENOSCOPE_RETURN_IF_ERROR(instance.FindPages());
  return instance;
}

absl::StatusOr<TraceInstance> TraceInstance::First(const std::string& root) {
  TraceInstance instance(root, root);
  XENOSCOPE_RETURN_IF_ERROR(instance.FindPages());
  return instance;
}

absl::Status TraceInstance::FindPages() {
  cpus_ = CpusIn(path_ + "/per_cpu");
  // An instance has it where its pages may differ from others' (since Linux 6.8).
  for (const std::string& directory : {path_, root_}) {
    const auto header = ReadSmallFile(directory + "/events/header_page");
    if (header && page_size_ == 0) page_size_ = PageSize(*header);
  }
  if (page_size_ == 0 || cpus_.empty()) {
    return UnimplementedError("{} has no pages of a trace buffer", path_);
  }
  return absl::OkStatus();
}

TraceInstance::TraceInstance(TraceInstance&& other) noexcept
    : root_(std::move(other.root_)),
      path_(std::exchange(other.path_, {})),
      cpus_(std::move(other.cpus_)),
      page_size_(other.page_size_) {}

TraceInstance::~TraceInstance() {
  if (!path_.empty() && path_ != root_) rmdir(path_.c_str());
}

absl::Status TraceInstance::Write(const std::string& file, std::string_view text) const {
  const std::string path = path_ + "/" + file;
  const File opened(open(path.c_str(), O_WRONLY | O_CLOEXEC));
  const int error = opened.is_open() ? WriteAll(opened.fd(), AsBytes(text)) : errno;
  return error == 0 ? absl::OkStatus() : ErrnoError(error, "cannot write {} into {}", text, path);
}

std::string TraceInstance::EnableFile(const std::string& event) {
  return fmt::format("events/{}/enable", EventDirectory(event));
}

bool TraceInstance::Has(const std::string& event) const {
  return access(fmt::format("{}/{}", path_, EnableFile(event)).c_str(), F_OK) == 0;
}

absl::Status TraceInstance::Enable(const std::string& event) {
  if (!Has(event)) return NotFoundError("this Linux has no event {}", event);
  return Write(EnableFile(event), "1");
}

std::string TraceInstance::Tracer() const {
  std::string tracer = ReadSmallFile(path_ + "/current_tracer").value_or(kNoTracer);
  tracer.resize(std::min(tracer.find('\n'), tracer.size()));
  return tracer;
}

absl::Status TraceInstance::AddFunctions(const std::string& pattern) {
  if (access((path_ + "/" + kFunctionFilter).c_str(), W_OK) != 0) {
    return UnimplementedError("this Linux traces no functions");
  }
  // Linux says whether functions fit where the pattern ends: at the space.
  absl::Status added = Write(kFunctionFilter, pattern + " ");
  if (!absl::IsInvalidArgument(added)) return added;
  return NotFoundError("this Linux has no function that fits '{}'", pattern);
}

absl::Status TraceInstance::SetTracer(const std::string& tracer) {
  return Write("current_tracer", tracer);
}

absl::Status TraceInstance::RemoveTracer() { return Write("current_tracer", kNoTracer); }

absl::Status TraceInstance::TurnOff() { return Write("tracing_on", "0"); }

absl::Status TraceInstance::TurnOn() { return Write("tracing_on", "1"); }

absl::StatusOr<std::string> TraceInstance::Formats() const {
  std::string text;
  const auto add = [&text](const std::string& title, const std::string& path) {
    const auto part = ReadSmallFile(path);
    if (part) text += fmt::format("# {}\n{}\n", title, *part);
    return part.has_value();
  };
  if (!add("header_page", path_ + "/events/header_page") &&
      !add("header_page", root_ + "/events/header_page")) {
    return UnimplementedError("{} has no events/header_page", root_);
  }
  for (const std::string& system : Directories(path_ + "/events")) {
    const std::string of_system = fmt::format("{}/events/{}", path_, system);
    // 0: all of its events are off.
    if (ReadSmallFile(of_system + "/enable").value_or("0") == "0") continue;
    for (const std::string& event : Directories(of_system)) {
      const std::string directory = fmt::format("{}/{}", of_system, event);
      if (ReadSmallFile(directory + "/enable").value_or("0") == "0") continue;
      add(fmt::format("{}/{}", system, event), directory + "/format");
    }
  }
  if (Tracer() != kNoTracer) {
    for (const char* const event : kFunctionEvents) {
      add(event, fmt::format("{}/events/{}/format", root_, event));
    }
  }
  return text;
}

absl::StatusOr<File> TraceInstance::OpenPages(uint32_t cpu) const {
  const std::string path = fmt::format("{}/per_cpu/cpu{}/trace_pipe_raw", path_, cpu);
  File file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.is_open()) return ErrnoError(errno, "cannot open {}", path);
  return file;
}

TraceCounts TraceInstance::Counts(uint32_t cpu) const {
  TraceCounts counts;
  const auto text = ReadSmallFile(fmt::format("{}/per_cpu/cpu{}/stats", path_, cpu));
  for (const auto line : absl::StrSplit(text.value_or(""), '\n')) {
    const std::vector<std::string> parts = absl::StrSplit(line, absl::MaxSplits(": ", 1));
    uint64_t value = 0;
    if (parts.size() != 2 || !absl::SimpleAtoi(parts[1], &value)) continue;
    if (parts[0] == "read events") counts.read = value;
    if (parts[0] == "entries") counts.unread = value;
    if (parts[0] == "overrun" || parts[0] == "dropped events") counts.lost += value;
  }
  return counts;
}

}  // namespace xenoscope::sampler
