#include "cli/command_line.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mapped_ranges.h"
#include "base/spelling.h"
#include "cli/confinement.h"
#include "cli/output.h"

namespace xenoscope::cli {
namespace {

// In the order of -h.
constexpr NamedCommand kAllCommands[] = {
    {"record", AddRecord},     {"stat", AddStat},         {"events", AddEvents},
    {"doctor", AddDoctor},     {"agent", AddAgent},       {"mark", AddMark},
    {"top", AddTop},           {"report", AddReport},     {"diff", AddDiff},
    {"annotate", AddAnnotate}, {"summary", AddSummary},   {"threads", AddThreads},
    {"boot", AddBoot},         {"shutdown", AddShutdown}, {"dump", AddDump},
    {"timeline", AddTimeline}, {"archive", AddArchive},   {"unpack", AddUnpack},
    {"push", AddPush},         {"trend", AddTrend},       {"watch", AddWatch},
    {"prune", AddPrune},       {"man", AddMan},           {"completion", AddCompletion},
};

void PrintError(std::string_view message) { fmt::print(stderr, "xenoscope: {}\n", message); }

// Whether it does no more than read recordings and write what it is told to. `top` may record, and
// restricts itself when that has begun.
bool ReadsOnly(Command command) {
  static constexpr std::string_view kReaders[] = {
      "report",  "diff",   "annotate", "summary", "threads", "boot",  "dump",      "timeline",
      "archive", "unpack", "push",     "trend",   "watch",   "prune", "completion"};
  return std::ranges::find(kReaders, command.Name()) != std::end(kReaders);
}

// "; did you mean --domain?" for an argument that no option takes.
std::string NearOption(Command command, const std::string& argument) {
  std::vector<std::string> options;
  for (const Option& option : command.Options()) {
    for (const std::string& name : option.LongNames()) options.push_back("--" + name);
  }
  const std::vector<std::string_view> names(options.begin(), options.end());
  return SpellingHint(argument.substr(0, argument.find('=')), names);
}

std::string DescribeError(const Program& program, ParseResult result) {
  std::vector<std::string>& extras = result.unknown_words;
  std::erase(extras, "--");  // before a command to run
  if (extras.empty()) return *result.error;
  const std::string& argument = extras.front();
  if (program.Parsed() == program.Root() && !argument.starts_with('-')) {
    std::vector<std::string_view> names;
    for (const Command& command : program.Root().Subcommands()) names.push_back(command.Name());
    const std::string hint = SpellingHint(argument, names);
    if (!hint.empty()) return fmt::format("there is no command '{}'{}", argument, hint);
    return fmt::format("there is no command '{}'; the commands are {}", argument,
                       fmt::join(names, ", "));
  }
  if (argument.starts_with('-')) {
    return fmt::format("there is no option {}{}", argument, NearOption(program.Parsed(), argument));
  }
  return fmt::format("unexpected argument: {}", argument);
}

// Returns whether all files stayed as long as they were. Where one did not, what was printed is
// wrong.
bool ReportTruncatedFiles() {
  const std::vector<std::string> files = TruncatedMappings();
  for (const std::string& file : files) {
    PrintError(
        fmt::format("{}: truncated by another process while it was read, so the result is "
                    "incomplete; try again, or with a copy of the file",
                    file));
  }
  return files.empty();
}

}  // namespace

std::span<const NamedCommand> CommandsFor(std::string_view word) {
  if (word == "man" || word == "completion") return kAllCommands;  // they describe the others
  const auto* const named = std::ranges::find(kAllCommands, word, &NamedCommand::name);
  if (named == std::end(kAllCommands)) return kAllCommands;
  return {named, 1};
}

CommandLine::CommandLine(std::span<const NamedCommand> commands)
    : program_("xenoscope", "A statistical profiler for Xen that joins samples with xentrace.",
               "xenoscope " XENOSCOPE_VERSION) {
  Command root = program_.Root();
  root.SetFooter(
      "Example:\n  xenoscope record -o web.xeno -- sleep 10\n  xenoscope report "
      "web.xeno\n`xenoscope COMMAND -h` describes the options of a command.");
  for (const NamedCommand& command : commands) command.add(root, run_);
}

std::optional<int> CommandLine::Parse(int argc, const char* const* argv) {
  const ParseResult result = program_.Parse(argc, argv);
  if (result.help) return WriteStdout(*result.help).ok() ? EXIT_SUCCESS : kFailed;
  if (!result.error) return std::nullopt;
  const Command command = Parsed();
  const std::string name = command == program_.Root() ? "" : std::string(command.Name()) + " ";
  PrintError(fmt::format("{} (see xenoscope {}-h)", DescribeError(program_, result), name));
  return kWrongCommandLine;
}

int RunCommandLine(int argc, const char* const* argv) {
  CommandLine line(CommandsFor(argc > 1 ? argv[1] : ""));
  if (const auto status = line.Parse(argc, argv)) return *status;
  if (ReadsOnly(line.Parsed())) Confine(line.Parsed());
  const Outcome outcome = line.Work();
  if (!outcome.status.ok()) PrintError(Message(outcome.status));
  const bool is_whole = ReportTruncatedFiles();
  return outcome.status.ok() && is_whole ? outcome.exit_status : kFailed;
}

}  // namespace xenoscope::cli
