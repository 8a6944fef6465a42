// `xenoscope agent`: samples this guest for dom0's recordings.
#include <fmt/format.h>

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "sampler/agent/agent.h"

namespace xenoscope::cli {

void AddAgent(Command program, CommandAction& run) {
  Command command =
      program.AddSubcommand("agent", "In a guest: sample it when a recording in dom0 asks for it");
  auto allowed = std::make_shared<uint16_t>(0);
  command
      .AddOption("--allow", *allowed,
                 "The domain whose recordings may ask, by its id; 0 is dom0. No other can")
      .Range(0, 0x7fef)
      .ValueName("DOMID")
      .ShowDefault();
  command.SetFooter(
      "Example:\n"
      "  xenoscope agent                                # in the guest web1, as root\n"
      "  xenoscope record --active web1 -- sleep 10     # in dom0\n"
      "docs/agent.md says how to install it as a service, and what it allows.");
  command.SetCallback([&run, allowed] {
    run = [allowed] {
      return sampler::RunAgent(DomainId{*allowed}, "xenoscope " XENOSCOPE_VERSION,
                               [](std::string_view line) { fmt::print(stderr, "{}\n", line); });
    };
  });
}

}  // namespace xenoscope::cli
