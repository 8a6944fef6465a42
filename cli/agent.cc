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
  Command command = program.AddSubcommand("agent", "Sample this guest for recordings in dom0");
  auto allowed = std::make_shared<uint16_t>(0);
  command
      .AddOption("--allow", *allowed,
                 "Id of the only domain whose recordings may sample this guest; 0 is dom0")
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
