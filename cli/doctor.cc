// `xenoscope doctor`: what of this machine recording can use, and what to do about the rest.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/commands.h"
#include "cli/output.h"
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
  return nlohmann::ordered_json{{"findings", std::move(list)}}.dump(2) + "\n";
}

}  // namespace

void AddDoctor(CLI::App& app, CommandAction& run) {
  CLI::App* command =
      app.add_subcommand("doctor", "What `record` can use on this machine, and what it lacks");
  auto format = std::make_shared<std::string>("text");
  command->add_option("--format", *format, "text or json")
      ->check(CLI::IsMember({"text", "json"}))
      ->capture_default_str();
  command->footer(
      "Example:\n"
      "  xenoscope doctor");
  command->callback([&run, format] {
    run = [format] {
      const std::vector<sampler::Finding> findings = sampler::Diagnose(sampler::ProbeHost());
      return WriteStdout(*format == "json" ? Json(findings) : Text(findings));
    };
  });
}

}  // namespace xenoscope::cli
