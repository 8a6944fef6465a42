// The code of functions with their samples: what `annotate` shows, and the page of the functions
// with most samples.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "base/ids.h"
#include "cli/profile_source.h"
#include "correlate/profile.h"
#include "report/profile/annotate_view.h"
#include "report/profile/profile_view.h"

namespace xenoscope::cli {

// Where code comes from.
struct CodeOptions {
  std::vector<std::string> sources;  // directories of source trees
  bool instructions = false;         // instructions even where there are sources
};

// The samples of one function of one image in one domain.
struct SampledFunction {
  DomainId domain;
  std::string image;
  std::string function;
  std::vector<const correlate::ProfileRow*> rows;  // of the profile
  double samples = 0;
  double share = 0;
};

// Returns the columns that a profile of code has.
std::vector<correlate::Dimension> CodeColumns(bool by_exit);

// Returns the directories of sources of these options: the working directory is the default.
std::vector<std::string> SourceDirectories(std::vector<std::string> sources,
                                           const SymbolOptions& symbols);

// Returns the functions that `wants` some row of, most samples first. They point into the rows,
// which are by CodeColumns. O(rows log rows).
std::vector<SampledFunction> SampledFunctions(
    const std::vector<correlate::ProfileRow>& rows,
    const std::function<bool(const correlate::ProfileRow&)>& wants);

// Returns the names of the exits in which the functions have samples, most first.
std::vector<std::string> ExitsOf(const report::ProfileReport& profile,
                                 std::span<const SampledFunction> functions);

// Returns the code of the function; its samples are divided by the exits, if there are any.
report::AnnotatedFunction Annotate(const ProfileSource& source,
                                   const report::ProfileReport& profile,
                                   const SampledFunction& function,
                                   const std::vector<std::string>& exits,
                                   const CodeOptions& options);

}  // namespace xenoscope::cli
