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

DescribedOption Describe(const Option& option) {
  DescribedOption described;
  for (const std::string& name : option.ShortNames()) described.names.push_back("-" + name);
  for (const std::string& name : option.LongNames()) described.names.push_back("--" + name);
  if (option.MaxValues() > 0) {
    const std::string type = option.ValueType();
    described.choices = Choices(type);
    described.value =
        described.names.empty() ? option.PositionalName() : type.substr(0, type.find(':'));
  }
  described.several = option.MaxValues() > 1;
  described.list = option.IsList();
  described.text = option.Description();
  described.standard = option.Default();
  return described;
}

std::vector<DescribedOption> DescribeAll(Command command, bool positional) {
  std::vector<DescribedOption> all;
  for (const Option& option : command.Options()) {
    if (option.GroupName().empty()) continue;  // hidden
    if (option.IsPositional() == positional) all.push_back(Describe(option));
  }
  return all;
}

}  // namespace

std::vector<DescribedOption> DescribeOptions(Command command) {
  return DescribeAll(command, false);
}

std::vector<DescribedOption> DescribePositionals(Command command) {
  return DescribeAll(command, true);
}

}  // namespace xenoscope::cli
