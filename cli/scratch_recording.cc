#include "cli/scratch_recording.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/error.h"
#include "recording/layout.h"
#include "sampler/small_file.h"

namespace xenoscope::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr std::string_view kPrefix = "xenoscope-top.";
constexpr int kStopPatienceMs = 5000;

std::string Base() {
  const char* const given = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): only read
  return given == nullptr || *given == '\0' ? "/tmp" : given;
}

std::string LogIn(const std::string& directory) { return directory + "/record.log"; }

// Removes our directories whose process has gone: it was killed.
void RemoveLeft(const std::string& base) {
  std::error_code error;
  std::vector<std::filesystem::path> left;
  for (const auto& entry : std::filesystem::directory_iterator(base, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(kPrefix)) continue;
    pid_t pid = 0;
    const char* const number = name.data() + kPrefix.size();
    const auto [end, bad] = std::from_chars(number, name.data() + name.size(), pid);
    if (bad != std::errc() || *end != '.') continue;
    if (kill(pid, 0) != 0 && errno == ESRCH) left.push_back(entry.path());
  }
  for (const auto& directory : left) std::filesystem::remove_all(directory, error);
}

}  // namespace

absl::StatusOr<ScratchRecording> ScratchRecording::Start(std::span<const std::string> arguments,
                                                         const sampler::EndSignals& signals) {
  const std::string base = Base();
  RemoveLeft(base);
  std::string directory = fmt::format("{}/{}{}.XXXXXX", base, kPrefix, getpid());
  if (mkdtemp(directory.data()) == nullptr) return ErrnoError(errno, "cannot make {}", directory);
  const int log = open(LogIn(directory).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  std::vector<std::string> words = {"/proc/self/exe", "record", "-o", directory + "/top.xeno"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  sampler::ChildProcess::Placement placement;
  placement.apart = true;
  placement.diagnostics = log;
  auto record = sampler::ChildProcess::Start(words, placement);
  if (log >= 0) close(log);
  if (!record.ok()) {
    std::error_code error;
    std::filesystem::remove_all(directory, error);
    return record.status();
  }
  ScratchRecording scratch(directory, *std::move(record));
  const std::string info = scratch.path() + "/" + std::string(recording::kInfoFile);
  while (access(info.c_str(), R_OK) != 0) {
    XENOSCOPE_RETURN_IF_ERROR(scratch.Check());
    constexpr milliseconds kPatience(20);
    if (signals.WaitUntil(steady_clock::now() + kPatience)) {
      return absl::CancelledError("ended before anything was recorded");
    }
  }
  return scratch;
}

ScratchRecording::~ScratchRecording() {
  if (directory_.empty()) return;
  record_.Stop(kStopPatienceMs);
  std::error_code error;
  std::filesystem::remove_all(directory_, error);
}

absl::Status ScratchRecording::Check() {
  const auto exit = record_.Poll();
  if (!exit) return absl::OkStatus();
  std::string said = sampler::ReadSmallFile(LogIn(directory_)).value_or("");
  constexpr std::string_view kName = "xenoscope: ";
  if (said.starts_with(kName)) said.erase(0, kName.size());
  return PreconditionError("recording ended: {}", said.empty() ? "it said nothing" : said);
}

}  // namespace xenoscope::cli
