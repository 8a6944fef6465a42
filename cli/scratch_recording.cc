#include "cli/scratch_recording.h"

#include <fcntl.h>
#include <unistd.h>

#include <chrono>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/own_command.h"
#include "recording/layout.h"
#include "sampler/small_file.h"

namespace xenoscope::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr int kStopTimeoutMs = 5000;

std::string LogIn(const std::string& directory) { return directory + "/record.log"; }

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
