#include "cli/scratch_recording.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/mode.h"
#include "recording/layout.h"
#include "sampler/running_processes.h"
#include "sampler/small_file.h"

namespace xenoscope::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kStopTimeoutMs = 5000;

std::string LogIn(const std::string& directory) { return directory + "/record.log"; }

// Whether both are one file.
bool IsSame(const std::string& a, const std::string& b) {
  struct stat of_a {};
  struct stat of_b {};
  return stat(a.c_str(), &of_a) == 0 && stat(b.c_str(), &of_b) == 0 && of_a.st_dev == of_b.st_dev &&
         of_a.st_ino == of_b.st_ino;
}

// The file that this function is in; empty where /proc does not show it.
std::string OwnFile() {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): its address is what is asked for
  const auto here = reinterpret_cast<Address>(&OwnFile);
  for (const sampler::ExecutableMap& map : sampler::MapsOf("/proc/self/maps")) {
    if (map.begin <= here && here < map.end) return map.path;
  }
  return "";
}

// The words that start this program once more. Where a dynamic loader was started to run it
// (ld.so [OPTION...] PROGRAM), what the kernel takes for the program is the loader: then these are
// the loader, its options and the program.
std::vector<std::string> OwnCommand() {
  const std::string exe = "/proc/self/exe";
  const std::string program = OwnFile();
  std::error_code error;
  if (!std::filesystem::exists(program, error) || IsSame(program, exe)) return {exe};
  std::vector<std::string> command = {exe};
  std::ifstream words("/proc/self/cmdline");
  std::string word;
  std::getline(words, word, '\0');  // the loader
  while (std::getline(words, word, '\0') && !IsSame(word, program)) command.push_back(word);
  if (!words) command.resize(1);
  command.push_back(program);
  return command;
}

}  // namespace

absl::StatusOr<ScratchRecording> ScratchRecording::Start(std::span<const std::string> arguments,
                                                         const sampler::EndSignals& signals) {
  XENOSCOPE_ASSIGN_OR_RETURN(ScratchDirectory directory, ScratchDirectory::Make("top"));
  const int log =
      open(LogIn(directory.path()).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  std::vector<std::string> words = OwnCommand();
  words.insert(words.end(), {"record", "-o", directory.path() + "/top.xeno"});
  words.insert(words.end(), arguments.begin(), arguments.end());
  sampler::ChildProcess::StartOptions placement;
  placement.own_process_group = true;
  placement.diagnostics = log;
  auto record = sampler::ChildProcess::Start(words, placement);
  if (log >= 0) close(log);
  if (!record.ok()) return record.status();
  ScratchRecording scratch(std::move(directory), *std::move(record));
  const std::string info = scratch.path() + "/" + std::string(recording::kInfoFile);
  while (access(info.c_str(), R_OK) != 0) {
    XENOSCOPE_RETURN_IF_ERROR(scratch.Check());
    constexpr milliseconds kPatience(20);
    if (signals.WaitUntil(steady_clock::now() + kPatience)) {
      return absl::CancelledError("recording ended before anything was recorded");
    }
  }
  return scratch;
}

ScratchRecording::~ScratchRecording() {
  if (!directory_.path().empty()) record_.Stop(kStopTimeoutMs);
}

absl::Status ScratchRecording::Check() {
  const auto exit = record_.Poll();
  if (!exit) return absl::OkStatus();
  std::string said = sampler::ReadSmallFile(LogIn(directory_.path())).value_or("");
  constexpr std::string_view kName = "xenoscope: ";
  if (said.starts_with(kName)) said.erase(0, kName.size());
  return PreconditionError("recording ended: {}", said.empty() ? "there was no message" : said);
}

}  // namespace xenoscope::cli
