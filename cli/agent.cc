// `xenoscope agent`: samples this guest for dom0's recordings.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <memory>

#include "base/error.h"
#include "cli/commands.h"
#include "sampler/agent/agent.h"

namespace xenoscope::cli {

void AddAgent(CLI::App& app, CommandAction& run) {
  CLI::App* command =
      app.add_subcommand("agent", "In a guest: sample it when a recording in dom0 asks for it");
  auto allowed = std::make_shared<uint16_t>(0);
  command
      ->add_option("--allow", *allowed,
                   "The domain whose recordings may ask, by its id; 0 is dom0. No other can")
      ->check(CLI::Range(0, 0x7fef))
      ->type_name("DOMID")
      ->capture_default_str();
  command->footer(
      "Example:\n"
      "  xenoscope agent                                # in the guest web1, as root\n"
      "  xenoscope record --active web1 -- sleep 10     # in dom0\n"
      "docs/agent.md says how to install it as a service, and what it allows.");
  command->callback([&run, allowed] {
    run = [allowed] {
      return sampler::RunAgent(DomainId{*allowed}, "xenoscope " XENOSCOPE_VERSION,
                               [](std::string_view line) { fmt::print(stderr, "{}\n", line); });
    };
  });
}

}  // namespace xenoscope::cli
