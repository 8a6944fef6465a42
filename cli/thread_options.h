// The option --threads.
#pragma once

#include "cli/options.h"

namespace xenoscope::cli {

// So many threads analyse a trace at most, unless more are given: others would mostly follow what
// comes before their parts.
inline constexpr unsigned kAnalysisThreads = 8;

// Adds --threads to a command that uses `most` threads unless more are given. `given` must outlive
// it; it stays 0 without the option.
void AddThreadsOption(Command command, unsigned& given, unsigned most);

// Limits everything that is divided over threads to those that were given, if any. Returns the
// number of threads to use. To be called before there are threads.
unsigned LimitThreads(unsigned given, unsigned most);

}  // namespace xenoscope::cli
