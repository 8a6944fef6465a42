// The command line: what main() does, in parts, so that a test can run whole commands in its own
// process.
#pragma once

#include <optional>
#include <span>

#include "cli/commands.h"
#include "cli/options.h"

namespace xenoscope::cli {

// Exit statuses of a run that failed. Otherwise the status is 0, or, for `record`, that of the
// command that it ran.
inline constexpr int kFailed = 1;            // the data was bad or the work failed
inline constexpr int kWrongCommandLine = 2;  // the command line was wrong

// A function that adds a subcommand; commands.h declares all of them.
using AddCommand = void (*)(Command program, CommandAction& run);

class CommandLine {
 public:
  // Adds all subcommands, or only `commands`: describing all of them takes most of the time of a
  // short run.
  CommandLine();
  explicit CommandLine(std::span<const AddCommand> commands);

  // Reads the words; the first is the program's name. Returns the exit status when there is no
  // work to do: help was asked for and printed, or an error was printed to stderr. To be called
  // once.
  std::optional<int> Parse(int argc, const char* const* argv);
  // Returns the subcommand that was parsed.
  Command Parsed() const { return program_.Parsed(); }
  // Does the work of the command.
  Outcome Work() const { return run_(); }

 private:
  Program program_;
  CommandAction run_;
};

// Parses the words, does the work and returns the exit status. An error of the work is printed to
// stderr. Throws what the standard library throws: errors of memory and locale.
int RunCommandLine(int argc, const char* const* argv);

}  // namespace xenoscope::cli
