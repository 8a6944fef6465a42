#include "cli/described_options.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace xenoscope::cli {
namespace {

// The words of "TEXT:{text,json}"; none for anything else.
std::vector<std::string> Choices(std::string_view type) {
  std::vector<std::string> choices;
  const size_t begin = type.find(":{");
  if (begin == std::string_view::npos || !type.ends_with('}')) return choices;
  std::string_view left = type.substr(begin + 2, type.size() - begin - 3);
  while (!left.empty()) {
    const size_t end = std::min(left.find(','), left.size());
    choices.emplace_back(left.substr(0, end));
    left.remove_prefix(std::min(end + 1, left.size()));
  }
  return choices;
}

DescribedOption Describe(const CLI::Option& option) {
  DescribedOption described;
  for (const std::string& name : option.get_snames()) described.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) described.names.push_back("--" + name);
  if (option.get_items_expected_max() > 0) {
    const std::string type = option.get_type_name();
    described.choices = Choices(type);
    described.value = described.names.empty() ? option.get_name() : type.substr(0, type.find(':'));
  }
  described.several = option.get_items_expected_max() > 1;
  described.text = option.get_description();
  described.standard = option.get_default_str();
  return described;
}

std::vector<DescribedOption> DescribeAll(const CLI::App& command, bool positional) {
  std::vector<DescribedOption> all;
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_group().empty()) continue;  // hidden
    if (option->get_positional() == positional) all.push_back(Describe(*option));
  }
  return all;
}

}  // namespace

std::vector<DescribedOption> DescribeOptions(const CLI::App& command) {
  return DescribeAll(command, false);
}

std::vector<DescribedOption> DescribePositionals(const CLI::App& command) {
  return DescribeAll(command, true);
}

std::vector<const CLI::App*> CommandsOf(const CLI::App& program) {
  return program.get_subcommands([](const CLI::App*) { return true; });
}

}  // namespace xenoscope::cli
