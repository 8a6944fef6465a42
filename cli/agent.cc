// `xenoscope agent`: samples this guest for dom0's recordings.
#include <fmt/format.h>

#include <cstdint>
#include <memory>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "sampler/agent/agent.h"

namespace xenoscope::cli {
namespace {

struct AgentOptions {
  uint16_t allowed = 0;  // a DomainId
  bool allow_stacks = false;
};

}  // namespace

void AddAgent(Command program, CommandAction& run) {
  Command command = program.AddSubcommand("agent", "Sample this guest for recordings in dom0");
  auto options = std::make_shared<AgentOptions>();
  command
      .AddOption("--allow", options->allowed,
                 "Id of the only domain whose recordings may sample this guest; 0 is dom0")
      .Range(0, 0x7fef)
      .ValueName("DOMID")
      .ShowDefault();
  command.AddFlag(
      "--allow-stacks", options->allow_stacks,
      "Let recordings of another domain than dom0 have pieces of the stacks of this "
      "guest's programs (record --call-graph dwarf), and other events of its kernel than "
      "those of threads (record --guest-events); dom0 may have both in any case");
  command.SetFooter(
      "Example:\n"
      "  xenoscope agent                                # in the guest web1, as root\n"
      "  xenoscope record --active web1 -- sleep 10     # in dom0\n"
      "docs/agent.md says how to install it as a service, and what it allows.");
  command.SetCallback([&run, options] {
    run = [options] {
      const DomainId allowed{options->allowed};
      return sampler::RunAgent(allowed, options->allow_stacks || allowed == kDom0,
                               "xenoscope " XENOSCOPE_VERSION,
                               [](std::string_view line) { fmt::print(stderr, "{}\n", line); });
    };
  });
}

}  // namespace xenoscope::cli
