// The command line: what main() does, in parts, so that a test can run whole commands in its own
// process.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "cli/commands.h"
#include "cli/options.h"

namespace xenoscope::cli {

// Exit statuses of a run that failed. Otherwise the status is 0, or, for `record`, that of the
// command that it ran.
inline constexpr int kFailed = 1;            // the data was bad or the work failed
inline constexpr int kWrongCommandLine = 2;  // the command line was wrong

// A subcommand, and the function that adds it; commands.h declares all of these.
struct NamedCommand {
  std::string_view name;
  void (*add)(Command program, CommandAction& run);
};

// Returns the subcommands that a command line needs whose first argument is `word`: the one of this
// name, or all of them. Describing all takes a millisecond or two, more than many a command's work.
[[nodiscard]] std::span<const NamedCommand> CommandsFor(std::string_view word);

class CommandLine {
 public:
  explicit CommandLine(std::span<const NamedCommand> commands);

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
