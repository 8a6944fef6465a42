#include "cli/own_command.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <system_error>

#include "base/mode.h"
#include "sampler/running_processes.h"

namespace xenoscope::cli {
namespace {

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

}  // namespace

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

absl::StatusOr<sampler::ChildProcess> StartOwn(std::span<const std::string> arguments,
                                               int inherited) {
  std::vector<std::string> command = OwnCommand();
  command.insert(command.end(), arguments.begin(), arguments.end());
  return sampler::ChildProcess::Start(command, {.own_process_group = true, .inherited = inherited});
}

}  // namespace xenoscope::cli
