#include "cli/thread_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/parallel.h"

namespace xenoscope::cli {

void AddThreadsOption(Command command, unsigned& given, unsigned most) {
  command
      .AddOption("--threads", given,
                 fmt::format("Number of threads; default: one per CPU, at most {}", most))
      .Range(1U, 1024U);
}

unsigned LimitThreads(unsigned given, unsigned most) {
  if (given == 0) return std::min(ThreadLimit(), most);
  SetThreadLimit(given);
  return given;
}

}  // namespace xenoscope::cli
