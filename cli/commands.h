// The subcommands. Each lives in a file of its own, cli/NAME.cc, with one function here that adds
// it to the command line and its name in the list of command_line.cc.
//
// An Add function describes its options to CLI11 and sets a callback that checks them (throwing
// CLI::ValidationError: "the command line was wrong", exit status 2) and leaves in `run` the work
// to do. An error that the work returns is printed as one line; exit status 1, unless the work
// chooses another.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <utility>

#include "absl/status/status.h"

namespace xenoscope::cli {

// What became of the work.
struct Outcome {
  // NOLINTNEXTLINE(google-explicit-constructor): most work has no exit status of its own
  Outcome(absl::Status became) : status(std::move(became)) {}

  absl::Status status;
  int exit_status = 0;  // of the program, where `status` is OK
};

using CommandAction = std::function<Outcome()>;

void AddRecord(CLI::App& app, CommandAction& run);
void AddEvents(CLI::App& app, CommandAction& run);
void AddDoctor(CLI::App& app, CommandAction& run);
void AddAgent(CLI::App& app, CommandAction& run);
void AddTop(CLI::App& app, CommandAction& run);
void AddReport(CLI::App& app, CommandAction& run);
void AddDiff(CLI::App& app, CommandAction& run);
void AddAnnotate(CLI::App& app, CommandAction& run);
void AddArchive(CLI::App& app, CommandAction& run);
void AddUnpack(CLI::App& app, CommandAction& run);
void AddSummary(CLI::App& app, CommandAction& run);
void AddDump(CLI::App& app, CommandAction& run);
void AddTimeline(CLI::App& app, CommandAction& run);
void AddMan(CLI::App& app, CommandAction& run);
void AddCompletion(CLI::App& app, CommandAction& run);

}  // namespace xenoscope::cli
