// `xenoscope events`: the names that `record -e` takes on this machine, and which source counts
// them.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "sampler/perf/perf_calls.h"
#include "sampler/perf/perf_events.h"
#include "sampler/pmu_events.h"

namespace xenoscope::cli {
namespace {

constexpr std::string_view kBoth = "xenoprof perf";

std::string Line(std::string_view name, std::string_view sources, std::string_view text) {
  return fmt::format("{:<48} {:<{}}  {}\n", name, sources, kBoth.size(), text);
}

absl::Status ListEvents(const std::string& word) {
  XENOSCOPE_ASSIGN_OR_RETURN(const auto hardware, sampler::ListEvents(word));
  const bool counters = sampler::CountersCount(*sampler::LinuxPerfCalls());
  std::string out;
  constexpr std::string_view kCycles = "CPU cycles while not halted";
  if (sampler::ContainsWord("cycles", kCycles, word)) {
    out += Line("cycles", counters ? kBoth : "xenoprof", kCycles);
  }
  for (const sampler::LinuxEvent& event : sampler::LinuxEvents()) {
    if (sampler::ContainsWord(event.name, event.text, word))
      out += Line(event.name, "perf", event.text);
  }
  for (const sampler::EventDescription& event : hardware) {
    const std::string_view sources = event.xenoprof ? (counters ? kBoth : "xenoprof")
                                     : counters     ? "perf"
                                                    : "";
    out += Line(event.name, sources, event.text);
  }
  if (out.empty()) {
    return NotFoundError(
        "no event has '{}' in its name or description{}; `xenoscope events` lists all", word,
        sampler::SuggestEvent(word));
  }
  return WriteStdout(out);
}

}  // namespace

void AddEvents(Command program, CommandAction& run) {
  Command command = program.AddSubcommand(
      "events", "List the events of this machine for `record -e`, and the sources that count them");
  auto word = std::make_shared<std::string>();
  command.AddOption("WORD", *word, "Only events with this text in their name or description");
  command.SetFooter(
      "Example:\n"
      "  xenoscope events cycles");
  command.SetCallback([&run, word] { run = [word] { return ListEvents(*word); }; });
}

}  // namespace xenoscope::cli
