// Fuzzes whole commands on recordings, in this process. There is no crash, no hang and no
// exception; errors are reported; figures that are printed add up. The first part of an input is
// the command's words, one on each line; @ is the recording, = a bare trace in it.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/bytes.h"
#include "base/error.h"
#include "cli/command_line.h"
#include "fuzz_recording.h"

// Sets the file for reports of sanitizers; null in a build without them.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the sanitizers' own name
extern "C" void __sanitizer_set_report_fd(void* fd) __attribute__((weak));

namespace {

namespace fuzz = xenoscope::fuzz;
namespace cli = xenoscope::cli;

constexpr std::string_view kCommands[] = {"report",   "diff",    "annotate", "summary", "dump",
                                          "timeline", "archive", "unpack",   "boot"};

// A file in memory that replaces standard output or standard error while it lives.
class Captured {
 public:
  explicit Captured(int standard)
      : standard_(standard), before_(dup(standard)), file_(memfd_create("captured", 0)) {
    if (before_ < 0 || file_ < 0 || dup2(file_, standard_) < 0) std::abort();
    if (standard == STDERR_FILENO && __sanitizer_set_report_fd != nullptr) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr): that is how it takes a number
      __sanitizer_set_report_fd(reinterpret_cast<void*>(static_cast<intptr_t>(before_)));
    }
  }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;
  ~Captured() {
    dup2(before_, standard_);
    close(before_);
    close(file_);
    if (standard_ == STDERR_FILENO && __sanitizer_set_report_fd != nullptr) {
      // NOLINTNEXTLINE(performance-no-int-to-ptr)
      __sanitizer_set_report_fd(reinterpret_cast<void*>(intptr_t{STDERR_FILENO}));
    }
  }

  std::string Text() const {
    std::string text(static_cast<size_t>(std::max<off_t>(lseek(file_, 0, SEEK_END), 0)), '\0');
    if (pread(file_, text.data(), text.size(), 0) != static_cast<ssize_t>(text.size())) {
      std::abort();
    }
    return text;
  }

 private:
  int standard_;
  int before_;
  int file_;
};

// Returns the words of the command, without those that would lead out of the directory; nothing
// unless it is a command that reads.
std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words = {"xenoscope"};
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string word(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.find('\0') != std::string::npos) return {};
    if (word.find('/') != std::string::npos || word.find("..") != std::string::npos) return {};
    // No server is asked, and the number of threads is limited.
    if (word.starts_with("--debug") || word.starts_with("--thr")) return {};
    if (word == "@") word = "made.xeno";
    if (word == "=") word = "made.xeno/trace.xentrace";
    words.push_back(std::move(word));
  }
  if (words.size() < 2 || std::ranges::find(kCommands, words[1]) == std::end(kCommands)) return {};
  return words;
}

// Returns whether the samples of a report are attributed or in a remainder.
bool AddsUp(const nlohmann::json& report) {
  const auto samples = report.find("samples");
  if (samples == report.end() || !samples->is_object() || !samples->contains("remainders")) {
    return true;  // it is of another command, or of several recordings
  }
  double sum = samples->at("attributed").get<double>();
  for (const auto& remainder : samples->at("remainders")) sum += remainder.get<double>();
  return std::abs(sum - samples->at("total").get<double>()) < 0.5;
}

void Check(bool good, const char* what) {
  if (good) return;
  fmt::print(stderr, "commands_fuzz: {}\n", what);
  std::abort();
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const fuzz::WorkDirectory directory;
  static const bool prepared = [] {
    // NOLINTBEGIN(concurrency-mt-unsafe): nothing else runs yet
    setenv("XDG_CACHE_HOME", directory.path().c_str(), 1);
    setenv("XDG_CONFIG_HOME", directory.path().c_str(), 1);
    setenv("TMPDIR", directory.path().c_str(), 1);
    unsetenv("DEBUGINFOD_URLS");
    // NOLINTEND(concurrency-mt-unsafe)
    return true;
  }();
  (void)prepared;
  const auto parts = fuzz::PartsOf(xenoscope::AsText(std::as_bytes(std::span(data, size))));
  const std::vector<std::string> words = WordsOf(parts.front());
  if (words.empty()) return 0;
  directory.Clear();
  for (size_t i = 1; i < parts.size(); ++i) fuzz::WriteFilePart("made.xeno", parts[i]);

  std::vector<const char*> argv;
  argv.reserve(words.size());
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::optional<int> exit;
  absl::Status status;
  std::string out;
  std::string said;
  {
    const Captured output(STDOUT_FILENO);
    const Captured errors(STDERR_FILENO);
    cli::CommandLine line(cli::CommandsFor(words[1]));
    exit = line.Parse(static_cast<int>(argv.size()), argv.data());
    if (!exit) status = line.Work().status;
    out = output.Text();
    said = errors.Text();
  }
  if (exit) {
    Check(*exit == 0 || said.starts_with("xenoscope: "), "a wrong command line without a word");
    return 0;
  }
  Check(status.ok() || !xenoscope::Message(status).empty(), "an error without a word");
  if (absl::IsInternal(status)) {
    fmt::print(stderr, "{}\n", status.ToString());
    Check(false, "sums that do not add up");
  }
  if (status.ok() && std::ranges::find(words, "json") != words.end() && out.starts_with("{")) {
    const auto json = nlohmann::json::parse(out, nullptr, false);
    Check(words[1] == "dump" || !json.is_discarded(), "JSON that cannot be read");
    if (words[1] == "report" && json.is_object()) Check(AddsUp(json), "samples that are nowhere");
  }
  return 0;
}
