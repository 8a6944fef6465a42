// `xenoscope agent`: samples this guest for dom0's recordings.
#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/shared_store.h"
#include "sampler/agent/agent.h"

namespace xenoscope::cli {
namespace {

struct AgentOptions {
  uint16_t allowed = 0;  // a DomainId
  bool allow_stacks = false;
  bool java_maps = false;
  bool until_killed = false;
  std::string shared{kSharedStore};
};

constexpr char kKeepNothing[] = "none";

// Keeps what dom0 shares, and says so.
absl::Status Keep(const std::string& file, Bytes bytes) {
  XENOSCOPE_RETURN_IF_ERROR(KeepShared(file, bytes));
  fmt::print(stderr, "dom0 shared what it recorded of this guest: `xenoscope report {}`\n",
             file == kSharedStore ? "--shared" : "--from-store sqlite:" + file);
  return absl::OkStatus();
}

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
  command.AddFlag(
      "--java-maps", options->java_maps,
      "While a recording samples this guest, ask its Java virtual machines for the names "
      "of their functions, as `jcmd PID Compiler.perfmap` does (Java 17 and later)");
  command.AddFlag("--until-killed", options->until_killed,
                  "Go on when SIGTERM comes, which init sends to all programs when the guest shuts "
                  "down, for record --shutdown; SIGINT ends the agent (docs/shutdown.md)");
  command
      .AddOption("--shared", options->shared,
                 "Store of what dom0 shares with this guest (record --share), whose oldest slices "
                 "are removed beyond 64 MB: a file, which `report --shared` reads; none: keep "
                 "nothing")
      .ValueName("FILE|none")
      .ShowDefault();
  command.SetFooter(
      "Example:\n"
      "  xenoscope agent                                # in the guest web1, as root\n"
      "  xenoscope record --active web1 -- sleep 10     # in dom0\n"
      "docs/agent.md says how to install it as a service, and what it allows.");
  command.SetCallback([&run, options] {
    run = [options] {
      const DomainId allowed{options->allowed};
      sampler::AgentSetup setup{
          .allowed = allowed,
          .allow_stacks = options->allow_stacks || allowed == kDom0,
          .asks_java_vms = options->java_maps,
          .until_killed = options->until_killed,
          .program = "xenoscope " XENOSCOPE_VERSION,
          .say = [](std::string_view line) { fmt::print(stderr, "{}\n", line); }};
      if (options->shared != kKeepNothing) {
        setup.keep_shared = [file = options->shared](Bytes bytes) { return Keep(file, bytes); };
      }
      return sampler::RunAgent(setup);
    };
  });
}

}  // namespace xenoscope::cli
