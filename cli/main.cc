// The command.
#include <cstdio>
#include <exception>

#include "cli/command_line.h"
#include "cli/output.h"

int main(int argc, char** argv) {
  xenoscope::cli::FilterStderr();
  try {
    return xenoscope::cli::RunCommandLine(argc, argv);
  } catch (const std::exception& error) {  // the standard library's only: memory, locale
    std::fputs("xenoscope: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
    return xenoscope::cli::kFailed;
  }
}
