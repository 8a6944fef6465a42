// The code of functions with their samples beside it: what `xenoscope annotate` prints.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "report/table/table_text.h"

namespace xenoscope::report {

// What of a line's samples is in a function that was inlined there.
struct InlinedSamples {
  std::string function;  // "f (file.c:12)"
  double samples = 0;
};

// A line of source, or an instruction.
struct CodeLine {
  std::string place;  // "123", or "+0x1c" from the function's beginning
  std::string code;
  double samples = 0;
  std::vector<double> by_exit = {};  // of AnnotatedFunction::exits
  std::vector<InlinedSamples> inlined = {};
};

struct CodeBlock {
  std::string title;  // the file, or "instructions"
  std::vector<CodeLine> lines;
};

struct AnnotatedFunction {
  std::string domain;  // "web1 (d3)"
  std::string image;
  std::string function;
  double samples = 0;
  double share = 0;                // of all samples of the profile
  std::vector<std::string> exits;  // columns of samples; empty: not split
  std::vector<CodeBlock> blocks;   // each sample is in one line of one block
  std::vector<std::string> cautions;
};

std::string AnnotateText(const std::vector<AnnotatedFunction>& functions, const TextStyle& style);
// One page that needs nothing else, with nothing of the input left as markup.
std::string AnnotateHtml(const std::vector<AnnotatedFunction>& functions);
std::string AnnotateCsv(const std::vector<AnnotatedFunction>& functions);
nlohmann::ordered_json AnnotateJson(const std::vector<AnnotatedFunction>& functions);

}  // namespace xenoscope::report
