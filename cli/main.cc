// The command: reads the command line, hands over to a subcommand, turns its result into an exit
// status: 0 done, 1 the data was bad or the work failed, 2 the command line was wrong.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <string_view>

#include "absl/status/status.h"
#include "base/error.h"
#include "cli/commands.h"

namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kWrongCommandLine = 2;

void Complain(std::string_view message) { fmt::print(stderr, "xenoscope: {}\n", message); }

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
  xenoscope::cli::AddReport(app, run);
  xenoscope::cli::AddSummary(app, run);
  xenoscope::cli::AddDump(app, run);
  xenoscope::cli::AddTimeline(app, run);

  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked_for_help) {
    return app.exit(asked_for_help);
  } catch (const CLI::ParseError& error) {
    Complain(fmt::format("{}; see xenoscope -h", error.what()));
    return kWrongCommandLine;
  }

  const absl::Status status = run();
  if (status.ok()) return kDone;
  Complain(xenoscope::Message(status));
  return kFailed;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return Main(argc, argv);
  } catch (const std::exception& error) {  // the standard library's only: memory, locale
    std::fputs("xenoscope: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
    return kFailed;
  }
}
