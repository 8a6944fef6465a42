#include "cli/command_line.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mapped_ranges.h"
#include "base/spelling.h"
#include "cli/confinement.h"
#include "cli/described_options.h"
#include "cli/output.h"

namespace xenoscope::cli {
namespace {

// In the order of -h.
constexpr AddCommand kAllCommands[] = {
    AddRecord,   AddEvents,  AddDoctor,   AddAgent,   AddTop,
    AddReport,   AddDiff,    AddAnnotate, AddSummary, AddDump,
    AddTimeline, AddArchive, AddUnpack,   AddMan,     AddCompletion,
};

void PrintError(std::string_view message) { fmt::print(stderr, "xenoscope: {}\n", message); }

// The command that the command line names, or the whole program.
const CLI::App& Named(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : *commands.front();
}

// Whether it does no more than read recordings and write what it is told to. `top` may record, and
// restricts itself when that has begun.
bool ReadsOnly(const CLI::App& command) {
  static constexpr std::string_view kReaders[] = {"report", "diff",     "annotate", "summary",
                                                  "dump",   "timeline", "archive",  "unpack"};
  return std::ranges::find(kReaders, command.get_name()) != std::end(kReaders);
}

// "; did you mean --domain?" for an argument that no option takes.
std::string NearOption(const CLI::App& app, const std::string& argument) {
  std::vector<std::string> options;
  for (const CLI::Option* option : Named(app).get_options()) {
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  }
  const std::vector<std::string_view> names(options.begin(), options.end());
  return SpellingHint(argument.substr(0, argument.find('=')), names);
}

std::string DescribeError(const CLI::App& app, const CLI::ParseError& error) {
  std::vector<std::string> extras = app.remaining(true);
  std::erase(extras, "--");  // before a command to run
  if (extras.empty()) return error.what();
  const std::string& argument = extras.front();
  if (!Named(app).get_parent() && !argument.starts_with('-')) {
    std::vector<std::string_view> names;
    for (const CLI::App* command : CommandsOf(app)) {
      names.push_back(command->get_name());
    }
    const std::string hint = SpellingHint(argument, names);
    if (!hint.empty()) return fmt::format("no command {}{}", argument, hint);
    return fmt::format("no command {}; the commands are {}", argument, fmt::join(names, ", "));
  }
  if (argument.starts_with('-')) {
    return fmt::format("no option {}{}", argument, NearOption(app, argument));
  }
  return fmt::format("one argument too many: {}", argument);
}

// Returns whether all files stayed as long as they were. Where one did not, what was printed is
// wrong.
bool ReportTruncatedFiles() {
  const std::vector<std::string> files = TruncatedMappings();
  for (const std::string& file : files) {
    PrintError(
        fmt::format("{}: cut short while it was read: what was read of it behind its new end is "
                    "missing from the result; try again, or with a copy of it",
                    file));
  }
  return files.empty();
}

}  // namespace

CommandLine::CommandLine() : CommandLine(kAllCommands) {}

CommandLine::CommandLine(std::span<const AddCommand> commands)
    : app_("A statistical profiler for Xen that joins samples with xentrace.", "xenoscope") {
  app_.set_version_flag("--version", "xenoscope " XENOSCOPE_VERSION);
  app_.require_subcommand(1);
  app_.failure_message(CLI::FailureMessage::simple);
  app_.footer(
      "Example:\n"
      "  xenoscope record -o web.xeno -- sleep 10\n"
      "  xenoscope report web.xeno\n"
      "`xenoscope COMMAND -h` tells about a command.");
  for (const AddCommand add : commands) add(app_, run_);
}

std::optional<int> CommandLine::Parse(int argc, const char* const* argv) {
  try {
    app_.parse(argc, argv);
  } catch (const CLI::Success& asked_for_help) {
    std::ostringstream help;
    (void)app_.exit(asked_for_help, help, help);
    return WriteStdout(help.str()).ok() ? EXIT_SUCCESS : kFailed;
  } catch (const CLI::ParseError& error) {
    const CLI::App& command = Named(app_);
    PrintError(fmt::format("{} (see xenoscope {}-h)", DescribeError(app_, error),
                           command.get_parent() ? command.get_name() + " " : ""));
    return kWrongCommandLine;
  }
  return std::nullopt;
}

const CLI::App& CommandLine::Command() const { return Named(app_); }

int RunCommandLine(int argc, const char* const* argv) {
  CommandLine line;
  if (const auto status = line.Parse(argc, argv)) return *status;
  if (ReadsOnly(line.Command())) Confine(line.Command());
  const Outcome outcome = line.Work();
  if (!outcome.status.ok()) PrintError(Message(outcome.status));
  const bool is_whole = ReportTruncatedFiles();
  return outcome.status.ok() && is_whole ? outcome.exit_status : kFailed;
}

}  // namespace xenoscope::cli
