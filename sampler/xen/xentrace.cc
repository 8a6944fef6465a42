#include "sampler/xen/xentrace.h"

#include <fcntl.h>
#include <glob.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/error.h"
#include "sampler/running_processes.h"
#include "sampler/small_file.h"
#include "sampler/xen/trace_buffers.h"

namespace xenoscope::sampler {
namespace {

constexpr int kPipeSize = 1 << 20;      // limit of an ordinary user
constexpr int kStartTimeoutMs = 10000;  // time in which it fails even on a busy host
constexpr int kStopTimeoutMs =
    10000;  // it copies what the buffers hold, to a disk that may be slow

bool IsProgram(const std::string& path) { return access(path.c_str(), X_OK) == 0; }

std::string LastLine(int fd) {
  std::array<char, 4096> buffer{};
  struct stat info {};
  if (fstat(fd, &info) != 0) return "";
  const off_t from = std::max<off_t>(0, info.st_size - static_cast<off_t>(buffer.size()));
  const ssize_t n = pread(fd, buffer.data(), buffer.size(), from);
  if (n <= 0) return "";
  const std::string_view text(buffer.data(), static_cast<size_t>(n));
  std::string last;
  for (const absl::string_view line :
       absl::StrSplit(absl::string_view(text.data(), text.size()), absl::ByAnyChar("\n\r"))) {
    const absl::string_view stripped = absl::StripAsciiWhitespace(line);
    if (!stripped.empty()) last = std::string(stripped);
  }
  return last;
}

// Returns the error that another process takes the trace, with the xentrace if there is one.
absl::Status TraceIsTaken() {
  std::string who;
  ForEachProcess("/proc", [&who](uint32_t pid, const std::string& directory) {
    if (who.empty() && ReadSmallFile(directory + "/comm") == "xentrace") {
      who = fmt::format(" (process {})", pid);
    }
  });
  return PreconditionError(
      "xentrace is running already{}: end it, or record samples alone with --no-trace", who);
}

}  // namespace

uint32_t DefaultBufferPages(uint32_t pcpus) {
  constexpr uint32_t kTotalPages = 16384;
  constexpr uint32_t kMinPages = 256;
  constexpr uint32_t kMaxPages = 1024;
  return std::clamp(kTotalPages / std::max(pcpus, 1U), kMinPages, kMaxPages);
}

absl::Status CheckTraceIsFree() { return HasTraceConsumer() ? TraceIsTaken() : absl::OkStatus(); }

absl::StatusOr<std::string> FindXentrace() {
  const char* path = std::getenv("PATH");
  const std::vector<std::string> directories = absl::StrSplit(path == nullptr ? "" : path, ':');
  for (const std::string& directory : directories) {
    std::string candidate = directory + "/xentrace";
    if (!directory.empty() && IsProgram(candidate)) return candidate;
  }
  // Debian has a directory of tools for each version of Xen.
  glob_t found{};
  std::string last;
  if (glob("/usr/lib/xen-*/bin/xentrace", 0, nullptr, &found) == 0) {
    for (size_t i = 0; i < found.gl_pathc; ++i) {
      if (IsProgram(found.gl_pathv[i])) last = found.gl_pathv[i];
    }
  }
  globfree(&found);
  if (!last.empty()) return last;
  return NotFoundError(
      "xentrace is neither in PATH nor in /usr/lib/xen-*/bin: install xen-utils, or record samples "
      "alone with --no-trace");
}

absl::StatusOr<std::unique_ptr<Xentrace>> Xentrace::Start(const TraceRequest& request, File file,
                                                          const std::string& path) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::string program, FindXentrace());
  File diagnostics(memfd_create("xentrace", MFD_CLOEXEC));
  int ends[2] = {-1, -1};
  if (!diagnostics.is_open() || pipe2(ends, O_CLOEXEC) != 0) {
    return ErrnoError(errno, "cannot make a pipe to xentrace");
  }
  File into(ends[1]);
  fcntl(into.fd(), F_SETPIPE_SZ, kPipeSize);  // an optimisation that may fail
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<Xentrace> xentrace(
      new Xentrace(File(ends[0]), std::move(file), std::move(diagnostics)));
  // xentrace requires the name of a file, and prints messages on its standard output.
  const std::vector<std::string> words = {
      program,
      "-D",
      "-e",
      fmt::format("0x{:08x}", request.event_mask.value),
      "-S",
      std::to_string(request.buffer_pages.value_or(DefaultBufferPages(/*pcpus=*/1))),
      "-s",
      std::to_string(request.poll_ms),
      fmt::format("/proc/self/fd/{}", into.fd())};
  absl::StatusOr<ChildProcess> child =
      ChildProcess::Start(words, {.own_process_group = true,
                                  .diagnostics = xentrace->diagnostics_.fd(),
                                  .inherited = into.fd()});
  into = File();  // closed, so that the pipe ends when xentrace does
  XENOSCOPE_RETURN_IF_ERROR(child.status());
  xentrace->child_ = *std::move(child);
  xentrace->spooler_.emplace(xentrace->pipe_.fd(), xentrace->file_.fd(), path,
                             PipeSpooler::kMaxQueuedBytes,
                             [losses = &xentrace->losses_](Bytes bytes) { losses->Take(bytes); });
  XENOSCOPE_RETURN_IF_ERROR(xentrace->WaitUntilTracing());
  return xentrace;
}

Xentrace::Xentrace(File pipe, File file, File diagnostics)
    : pipe_(std::move(pipe)), file_(std::move(file)), diagnostics_(std::move(diagnostics)) {}

Xentrace::~Xentrace() { Stop().IgnoreError(); }

// Waits until it traces: until bytes come, or for some time, as an idle host may have nothing to
// trace.
absl::Status Xentrace::WaitUntilTracing() {
  using std::chrono::steady_clock;
  const auto until = steady_clock::now() + std::chrono::milliseconds(kStartTimeoutMs);
  while (steady_clock::now() < until && bytes() == 0) {
    XENOSCOPE_RETURN_IF_ERROR(Check());
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return absl::OkStatus();
}

absl::Status Xentrace::Check() {
  XENOSCOPE_RETURN_IF_ERROR(spooler_->status());
  const std::optional<Exit> exit = child_ ? child_->Poll() : std::nullopt;
  return exit ? Died(*exit) : absl::OkStatus();
}

// Waits until xentrace waits for Xen, as it does most of the time: a signal that comes during a
// write interrupts that, and xentrace drops what it still had.
void Xentrace::WaitUntilIdle() {
  using std::chrono::steady_clock;
  const auto until = steady_clock::now() + std::chrono::milliseconds(kStopTimeoutMs);
  int waiting = 0;
  while (!child_->Poll() && steady_clock::now() < until) {
    const bool is_read = ioctl(pipe_.fd(), FIONREAD, &waiting) != 0 || waiting == 0;
    if (is_read && child_->WaitsForEvents()) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

absl::Status Xentrace::Stop() {
  if (!child_) return absl::OkStatus();
  // Where a disk is slower than the trace, xentrace is always in the middle of a write. It comes to
  // rest when there are no more records, and when all that it writes is taken: at most what Xen's
  // buffers hold.
  PauseTrace();
  spooler_->LiftLimit();
  WaitUntilIdle();
  const Exit exit = child_->Stop(kStopTimeoutMs);
  child_.reset();
  XENOSCOPE_RETURN_IF_ERROR(spooler_->Finish());
  constexpr int kTerminated = 128 + SIGTERM;
  return exit.Succeeded() || exit.status == kTerminated ? absl::OkStatus() : Died(exit);
}

absl::Status Xentrace::Died(Exit exit) const {
  const std::string words = LastLine(diagnostics_.fd());
  // It could not bind the one interrupt of the trace buffers.
  if (absl::StrContains(words, "VIRQ")) {
    return TraceIsTaken();
  }
  // What it printed before a signal ended it is not the cause.
  if (exit.signal != 0) {
    return PreconditionError("xentrace {}: the trace ends there", ToString(exit));
  }
  return PreconditionError("xentrace {}{}{}", ToString(exit), words.empty() ? "" : ": ", words);
}

std::chrono::nanoseconds Xentrace::CpuTime() const {
  return child_ ? child_->CpuTime() : std::chrono::nanoseconds(0);
}

}  // namespace xenoscope::sampler
