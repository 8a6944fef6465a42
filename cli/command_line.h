// The command line: what main() does, in parts, so that a test can run whole commands in its own
// process.
#pragma once

#include <optional>
#include <span>

#include "cli/commands.h"
#include "cli/options.h"

namespace xenoscope::cli {

// Exit statuses of what was not done; else it is 0, and of `record` that of the command that it
// ran.
inline constexpr int kFailed = 1;            // the data was bad or the work failed
inline constexpr int kWrongCommandLine = 2;  // the command line was wrong

// Adds a subcommand, as those of commands.h do.
using AddCommand = void (*)(Command program, CommandAction& run);

class CommandLine {
 public:
  // With all subcommands, or with these: to describe them all takes most of the time of a command
  // that does little.
  CommandLine();
  explicit CommandLine(std::span<const AddCommand> commands);

  // Reads the words, the program's name first. The exit status when there is no work to do: help
  // was asked for and printed, or what is wrong was said on stderr. Once for each object.
  std::optional<int> Parse(int argc, const char* const* argv);
  // The subcommand that was parsed.
  Command Parsed() const { return program_.Parsed(); }
  // Does the work of the command.
  Outcome Work() const { return run_(); }

 private:
  Program program_;
  CommandAction run_;
};

// Does all of it and gives the exit status; an error of the work is said on stderr. Throws what the
// standard library throws: memory, locale.
int RunCommandLine(int argc, const char* const* argv);

}  // namespace xenoscope::cli
