// The code of one function as lines of its source, or as instructions, with samples beside them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mode.h"
#include "symbolizer/image_file.h"
#include "symbolizer/source_finder.h"

namespace xenoscope::symbolizer {

// Samples at an address of the file, as linked; a number for each way in which they are told apart.
struct SampledAddress {
  Address address = 0;
  std::vector<double> samples;
};

struct ListedLine {
  std::string place;  // the line's number, or "+0x1c" from the function's beginning
  std::string code;
  std::vector<double> samples;  // empty: none
  // What of them is in functions that the line calls and that were inlined: "f (file.c:12)", most
  // first.
  struct Inlined {
    std::string function;
    std::vector<double> samples;
  };
  std::vector<Inlined> inlined = {};
};

struct Listing {
  std::string title;  // the source's path; "instructions"
  std::vector<ListedLine> lines;
};

// By lines of the file in which the function is written; samples of what is inlined into it count
// for the line that calls it. Samples of no such line have one of their own. Lines far from all
// samples are left out. Error, for a user: lines are not known, or `sources` does not have the
// file.
absl::StatusOr<Listing> ListSource(const CodeLocation& function,
                                   std::span<const SampledAddress> samples,
                                   const SourceFinder& sources);

// By instructions; without the code only those that have samples, as addresses.
Listing ListInstructions(const CodeLocation& function, std::span<const SampledAddress> samples);

}  // namespace xenoscope::symbolizer
