// The code of functions with their samples: the output of `xenoscope annotate`.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "report/table/table_text.h"

namespace xenoscope::report {

// The samples of a line in one function that was inlined there.
struct InlinedSamples {
  std::string function;  // "f (file.c:12)"
  double samples = 0;
};

// A line of source, or an instruction.
struct CodeLine {
  std::string place;  // line number "123", or offset "+0x1c" in the function
  std::string code;
  double samples = 0;
  std::vector<double> by_exit = {};  // samples at each of AnnotatedFunction::exits
  std::vector<InlinedSamples> inlined = {};
};

struct CodeBlock {
  std::string title;  // name of the file, or "instructions"
  std::vector<CodeLine> lines;
};

struct AnnotatedFunction {
  std::string domain;  // "web1 (d3)"
  std::string image;
  std::string function;
  double samples = 0;
  double share = 0;                // part of all samples of the profile
  std::vector<std::string> exits;  // columns of samples; empty: one column for all
  std::vector<CodeBlock> blocks;   // code; each sample is in one line of one block
  std::vector<std::string> cautions;
};

std::string AnnotateText(const std::vector<AnnotatedFunction>& functions, const TextStyle& style);
// Returns a self-contained page. Text from the input is escaped.
std::string AnnotateHtml(const std::vector<AnnotatedFunction>& functions);
std::string AnnotateCsv(const std::vector<AnnotatedFunction>& functions);
nlohmann::ordered_json AnnotateJson(const std::vector<AnnotatedFunction>& functions);

}  // namespace xenoscope::report
