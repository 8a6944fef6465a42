// `xenoscope mark`: writes a text into the trace that dom0 records, from any domain.
#include "sampler/mark/mark.h"

#include <memory>
#include <string>

#include "cli/commands.h"
#include "cli/options.h"

namespace xenoscope::cli {
namespace {

struct MarkOptions {
  std::string text;
  bool begin = false;
  bool end = false;
};

}  // namespace

void AddMark(Command program, CommandAction& run) {
  Command command = program.AddSubcommand(
      "mark", "Write a text into the trace that is being recorded, in dom0 or in a guest");
  auto options = std::make_shared<MarkOptions>();
  command.AddOption("TEXT", options->text, "At most 64 bytes").Required();
  command.AddFlag("--begin", options->begin, "The text names something that begins now");
  command.AddFlag("--end", options->end, "The text names something that ends now")
      .Excludes("--begin");
  command.SetFooter(
      "Example:\n"
      "  xenoscope mark --begin backup; backup; xenoscope mark --end backup   # in a guest, as "
      "root\n"
      "  xenoscope dump web.xeno --event guest   # where it was recorded");
  command.SetCallback([&run, options] {
    run = [options] {
      const auto kind = options->begin ? trace::GuestMarkKind::kBegin
                        : options->end ? trace::GuestMarkKind::kEnd
                                       : trace::GuestMarkKind::kInstant;
      return sampler::WriteMark(kind, options->text);
    };
  });
}

}  // namespace xenoscope::cli
