// The subcommands. Each lives in a file of its own, cli/NAME.cc, with one function here that adds
// it to the command line and its name in the list of command_line.cc.
//
// An Add function describes its command's options and sets a callback that checks them (a usage
// error, see ThrowUsageError(), gives exit status 2) and leaves in `run` the work to do. An error
// that the work returns is printed as one line; exit status 1, unless the work chooses another.
#pragma once

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "cli/options.h"

namespace xenoscope::cli {

// The result of the work.
struct Outcome {
  // NOLINTNEXTLINE(google-explicit-constructor): most work has no exit status of its own
  Outcome(absl::Status became) : status(std::move(became)) {}

  absl::Status status;
  int exit_status = 0;  // of the program, where `status` is OK
};

using CommandAction = std::function<Outcome()>;

void AddRecord(Command program, CommandAction& run);
void AddStat(Command program, CommandAction& run);
void AddEvents(Command program, CommandAction& run);
void AddDoctor(Command program, CommandAction& run);
void AddAgent(Command program, CommandAction& run);
void AddMark(Command program, CommandAction& run);
void AddTop(Command program, CommandAction& run);
void AddReport(Command program, CommandAction& run);
void AddDiff(Command program, CommandAction& run);
void AddAnnotate(Command program, CommandAction& run);
void AddArchive(Command program, CommandAction& run);
void AddUnpack(Command program, CommandAction& run);
void AddThreads(Command program, CommandAction& run);
void AddBoot(Command program, CommandAction& run);
void AddShutdown(Command program, CommandAction& run);
void AddPush(Command program, CommandAction& run);
void AddTrend(Command program, CommandAction& run);
void AddWatch(Command program, CommandAction& run);
void AddPrune(Command program, CommandAction& run);
void AddSummary(Command program, CommandAction& run);
void AddDump(Command program, CommandAction& run);
void AddTimeline(Command program, CommandAction& run);
void AddMan(Command program, CommandAction& run);
void AddCompletion(Command program, CommandAction& run);

}  // namespace xenoscope::cli
