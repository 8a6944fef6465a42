// Fuzzes command lines, one word on each line. There is no crash and no exception, and errors are
// reported. Only commands that print do their work.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "cli/command_line.h"
#include "fuzz_recording.h"

namespace {

std::vector<std::string> WordsOf(std::string_view text) {
  std::vector<std::string> words = {"xenoscope"};
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    words.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const xenoscope::fuzz::WorkDirectory directory;
  std::vector<std::string> words = WordsOf(xenoscope::AsText(std::as_bytes(std::span(data, size))));
  std::vector<const char*> argv;
  argv.reserve(words.size());
  for (const std::string& word : words) argv.push_back(word.c_str());  // up to its first zero
  xenoscope::cli::CommandLine line(xenoscope::cli::CommandsFor(words.size() > 1 ? words[1] : ""));
  const auto exit = line.Parse(static_cast<int>(argv.size()), argv.data());
  if (exit) {
    if (*exit != 0 && *exit != xenoscope::cli::kWrongCommandLine) std::abort();
    return 0;
  }
  const std::string_view command = line.Parsed().Name();
  if (command == "man" || command == "completion") (void)line.Work();
  return 0;
}
