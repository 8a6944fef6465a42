// A listing of one function: the lines of its source, or its instructions, with the samples of
// each.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mode.h"
#include "symbolizer/image_file.h"
#include "symbolizer/source_finder.h"

namespace xenoscope::symbolizer {

// The samples at an address of the file, as linked: one number for each column of the listing.
struct SampledAddress {
  Address address = 0;
  std::vector<double> samples;
};

struct ListedLine {
  std::string place;  // number of the line, or "+0x1c" from the function's beginning
  std::string code;
  std::vector<double> samples;  // samples, one number for each column; empty: none
  // The part of the samples in inlined functions that the line calls: "f (file.c:12)", most samples
  // first.
  struct Inlined {
    std::string function;
    std::vector<double> samples;
  };
  std::vector<Inlined> inlined = {};
};

struct Listing {
  std::string title;  // path of the source, or "instructions"
  std::vector<ListedLine> lines;
};

// Lists the lines of the file in which the function is written. Samples of code that is inlined
// into the function count for the line that calls it. Samples without such a line have a row of
// their own. Lines far from all samples are left out. Error, for a user: lines are not known, or
// `sources` does not have the file.
absl::StatusOr<Listing> ListSource(const CodeLocation& function,
                                   std::span<const SampledAddress> samples,
                                   const SourceFinder& sources);

// Lists the addresses that have samples.
Listing ListAddresses(const CodeLocation& function, std::span<const SampledAddress> samples);

// Lists instructions; without the code only the addresses that have samples. Errors: as
// Disassembler::Load().
absl::StatusOr<Listing> ListInstructions(const CodeLocation& function,
                                         std::span<const SampledAddress> samples);

}  // namespace xenoscope::symbolizer
