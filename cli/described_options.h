// What CLI11 knows of an option, in the pieces that manual pages and completions are made of.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace xenoscope::cli {

struct DescribedOption {
  std::vector<std::string> names;  // "-o", "--output"; none: a positional
  std::string value;               // "FILE"; empty: takes none
  std::vector<std::string> choices;
  bool several = false;  // may be given again, or takes several values
  std::string text;
  std::string standard;  // what it is without being given; may be empty
};

// In the order of -h; without positionals.
std::vector<DescribedOption> DescribeOptions(const CLI::App& command);
std::vector<DescribedOption> DescribePositionals(const CLI::App& command);

// The commands of the program, in the order of -h.
std::vector<const CLI::App*> CommandsOf(const CLI::App& program);

}  // namespace xenoscope::cli
