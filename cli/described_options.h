// The description of an option, in the parts that manual pages and completions are made of.
#pragma once

#include <string>
#include <vector>

#include "cli/options.h"

namespace xenoscope::cli {

struct DescribedOption {
  std::vector<std::string> names;  // "-o", "--output"; none: a positional
  std::string value;               // "FILE"; empty: takes none
  std::vector<std::string> choices;
  bool several = false;  // may be given again, or takes several values
  bool list = false;     // several choices may be given in one word, with commas
  std::string text;
  std::string standard;  // what it is without being given; may be empty
};

// Both describe in the order of -h: options, and positionals.
std::vector<DescribedOption> DescribeOptions(Command command);
std::vector<DescribedOption> DescribePositionals(Command command);

}  // namespace xenoscope::cli
