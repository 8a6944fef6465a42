// Symbols for a report: those of the recording, and files that the user names.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "recording/recording.h"
#include "symbolizer/load.h"

namespace xenoscope::cli {

struct SymbolOptions {
  std::vector<std::string> kernels;  // "[DOMAIN=]FILE"
  std::vector<std::string> images;
  std::vector<std::string> guests;  // "DOMAIN:KEY=VALUE,..."
  std::string xen;
  std::string symfs;
  bool Given() const {
    return !kernels.empty() || !images.empty() || !guests.empty() || !xen.empty();
  }
};

// Adds --kernel, --image, --xen-syms, --guest and --symfs to a command. `options` must outlive it.
void AddSymbolOptions(CLI::App& command, SymbolOptions& options);

// The files and roots that the user named, the better ones first. Errors: a domain that is unknown,
// or words that are none of --guest's.
absl::StatusOr<symbolizer::SymbolSources> NamedSources(const SymbolOptions& options,
                                                       const recording::RecordingInfo* info);

// Prints warnings to stderr. Errors: a file that the user named cannot be
// used, or the domain before it is unknown.
absl::StatusOr<symbolizer::LoadedSymbols> LoadSymbols(
    const SymbolOptions& options, const std::optional<recording::Recording>& recording);

}  // namespace xenoscope::cli
