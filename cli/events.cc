// `xenoscope events`: the names that `record -e` takes on this machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>

#include "base/error.h"
#include "cli/commands.h"
#include "sampler/pmu_events.h"

namespace xenoscope::cli {
namespace {

absl::Status ListEvents(const std::string& filter) {
  XENOSCOPE_ASSIGN_OR_RETURN(const auto events, sampler::ListEvents(filter));
  if (events.empty()) {
    return NotFoundError("no event has '{}' in its name; `xenoscope events` lists them all",
                         filter);
  }
  for (const sampler::EventDescription& event : events) {
    fmt::print("{:<48} {}\n", event.name, event.text);
  }
  return absl::OkStatus();
}

}  // namespace

void AddEvents(CLI::App& app, Run& run) {
  CLI::App* command = app.add_subcommand("events", "List the events that `record -e` takes here");
  auto filter = std::make_shared<std::string>();
  command->add_option("FILTER", *filter, "Only names that contain this");
  command->footer(
      "Example:\n"
      "  xenoscope events cycles");
  command->callback([&run, filter] { run = [filter] { return ListEvents(*filter); }; });
}

}  // namespace xenoscope::cli
