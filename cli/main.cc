// The command: reads the command line, hands over to a subcommand, turns its result into an exit
// status: 0 done, 1 the data was bad or the work failed, 2 the command line was wrong; of `record`
// that of the command that it ran.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/mapped_ranges.h"
#include "base/nearest.h"
#include "cli/commands.h"
#include "cli/confinement.h"
#include "cli/described_options.h"
#include "cli/output.h"

namespace {

constexpr int kFailed = 1;
constexpr int kWrongCommandLine = 2;

void Complain(std::string_view message) { fmt::print(stderr, "xenoscope: {}\n", message); }

// The command that the command line names, or the whole program.
const CLI::App& Named(const CLI::App& app) {
  const auto commands = app.get_subcommands();
  return commands.empty() ? app : *commands.front();
}

// "; did you mean --domain?" for an argument that no option takes.
std::string NearOption(const CLI::App& app, const std::string& argument) {
  std::vector<std::string> options;
  for (const CLI::Option* option : Named(app).get_options()) {
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  }
  const std::vector<std::string_view> names(options.begin(), options.end());
  return xenoscope::DidYouMean(argument.substr(0, argument.find('=')), names);
}

// Whether it does no more than read recordings and write what it is told to. `top` may record, and
// restricts itself when that has begun.
bool ReadsOnly(const CLI::App& command) {
  static constexpr std::string_view kReaders[] = {"report", "diff",     "annotate", "summary",
                                                  "dump",   "timeline", "archive",  "unpack"};
  return std::ranges::find(kReaders, command.get_name()) != std::end(kReaders);
}

std::string WhatIsWrong(const CLI::App& app, const CLI::ParseError& error) {
  std::vector<std::string> extras = app.remaining(true);
  std::erase(extras, "--");  // before a command to run
  if (extras.empty()) return error.what();
  const std::string& argument = extras.front();
  if (!Named(app).get_parent() && !argument.starts_with('-')) {
    std::vector<std::string_view> names;
    for (const CLI::App* command : xenoscope::cli::CommandsOf(app)) {
      names.push_back(command->get_name());
    }
    const std::string hint = xenoscope::DidYouMean(argument, names);
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
bool ComplainOfFilesCutShort() {
  const std::vector<std::string> files = xenoscope::MappingsCutShort();
  for (const std::string& file : files) {
    Complain(
        fmt::format("{}: cut short while it was read: what was read of it behind its new end is "
                    "missing from the result; try again, or with a copy of it",
                    file));
  }
  return files.empty();
}

int Main(int argc, const char* const* argv) {
  CLI::App app("A statistical profiler for Xen that joins samples with xentrace.", "xenoscope");
  app.set_version_flag("--version", "xenoscope " XENOSCOPE_VERSION);
  app.require_subcommand(1);
  app.failure_message(CLI::FailureMessage::simple);
  app.footer(
      "Example:\n"
      "  xenoscope record -o web.xeno -- sleep 10\n"
      "  xenoscope report web.xeno\n"
      "`xenoscope COMMAND -h` tells about a command.");

  xenoscope::cli::Run run;
  // One line a subcommand, in the order of -h.
  xenoscope::cli::AddRecord(app, run);
  xenoscope::cli::AddEvents(app, run);
  xenoscope::cli::AddDoctor(app, run);
  xenoscope::cli::AddAgent(app, run);
  xenoscope::cli::AddTop(app, run);
  xenoscope::cli::AddReport(app, run);
  xenoscope::cli::AddDiff(app, run);
  xenoscope::cli::AddAnnotate(app, run);
  xenoscope::cli::AddSummary(app, run);
  xenoscope::cli::AddDump(app, run);
  xenoscope::cli::AddTimeline(app, run);
  xenoscope::cli::AddArchive(app, run);
  xenoscope::cli::AddUnpack(app, run);
  xenoscope::cli::AddMan(app, run);
  xenoscope::cli::AddCompletion(app, run);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for_help) {
    std::ostringstream help;
    (void)app.exit(asked_for_help, help, help);
    return xenoscope::cli::WriteStdout(help.str()).ok() ? EXIT_SUCCESS : kFailed;
  } catch (const CLI::ParseError& error) {
    const CLI::App& command = Named(app);
    Complain(fmt::format("{} (see xenoscope {}-h)", WhatIsWrong(app, error),
                         command.get_parent() ? command.get_name() + " " : ""));
    return kWrongCommandLine;
  }

  if (ReadsOnly(Named(app))) xenoscope::cli::Confine(Named(app));
  const xenoscope::cli::Outcome outcome = run();
  if (!outcome.status.ok()) Complain(xenoscope::Message(outcome.status));
  const bool is_whole = ComplainOfFilesCutShort();
  return outcome.status.ok() && is_whole ? outcome.exit_status : kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  xenoscope::cli::FilterStderr();
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {  // the standard library's only: memory, locale
    std::fputs("xenoscope: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
    return kFailed;
  }
}
