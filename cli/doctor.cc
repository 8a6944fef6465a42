// `xenoscope doctor`: what of this machine recording can use, and what to do about the rest.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/output.h"
#include "report/table/table_json.h"
#include "sampler/host_check.h"

namespace xenoscope::cli {
namespace {

std::string Text(const std::vector<sampler::Finding>& findings) {
  size_t width = 0;
  for (const sampler::Finding& finding : findings) {
    width = std::max(width, finding.subject.size());
  }
  std::string out;
  for (const sampler::Finding& finding : findings) {
    out += fmt::format("{:<{}}  {:<6}  {}\n", finding.subject, width, ToString(finding.verdict),
                       finding.text);
  }
  return out;
}

std::string Json(const std::vector<sampler::Finding>& findings) {
  auto list = nlohmann::ordered_json::array();
  for (const sampler::Finding& finding : findings) {
    list.push_back({{"subject", finding.subject},
                    {"verdict", ToString(finding.verdict)},
                    {"text", finding.text}});
  }
  return report::Dump(nlohmann::ordered_json{{"findings", std::move(list)}});
}

}  // namespace

void AddDoctor(Command program, CommandAction& run) {
  Command command = program.AddSubcommand(
      "doctor", "Check what `record` can use on this machine, and how to enable the rest");
  auto format = std::make_shared<std::string>("text");
  command.AddOption("--format", *format, "Output format: text or json")
      .OneOf({"text", "json"})
      .ShowDefault();
  command.SetFooter(
      "Example:\n"
      "  xenoscope doctor");
  command.SetCallback([&run, format] {
    run = [format] {
      const std::vector<sampler::Finding> findings = sampler::Diagnose(sampler::ProbeHost());
      return WriteStdout(*format == "json" ? Json(findings) : Text(findings));
    };
  });
}

}  // namespace xenoscope::cli
