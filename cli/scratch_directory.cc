#include "cli/scratch_directory.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/error.h"

namespace xenoscope::cli {
namespace {

std::string Base() {
  const char* const given = std::getenv("TMPDIR");  // NOLINT(concurrency-mt-unsafe): only read
  return given == nullptr || *given == '\0' ? "/tmp" : given;
}

// Removes directories of processes that were killed.
void RemoveStale(const std::string& base, std::string_view prefix) {
  std::error_code error;
  std::vector<std::filesystem::path> left;
  for (const auto& entry : std::filesystem::directory_iterator(base, error)) {
    const std::string name = entry.path().filename();
    if (!name.starts_with(prefix)) continue;
    pid_t pid = 0;
    const char* const number = name.data() + prefix.size();
    const auto [end, bad] = std::from_chars(number, name.data() + name.size(), pid);
    if (bad != std::errc() || *end != '.') continue;
    if (kill(pid, 0) != 0 && errno == ESRCH) left.push_back(entry.path());
  }
  for (const auto& directory : left) std::filesystem::remove_all(directory, error);
}

}  // namespace

absl::StatusOr<ScratchDirectory> ScratchDirectory::Make(std::string_view command) {
  const std::string base = Base();
  const std::string prefix = fmt::format("xenoscope-{}.", command);
  RemoveStale(base, prefix);
  std::string directory = fmt::format("{}/{}{}.XXXXXX", base, prefix, getpid());
  if (mkdtemp(directory.data()) == nullptr) return ErrnoError(errno, "cannot make {}", directory);
  return ScratchDirectory(std::move(directory));
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code error;
  if (!path_.empty()) std::filesystem::remove_all(path_, error);
}

}  // namespace xenoscope::cli
