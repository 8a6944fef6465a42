// The symbols of a report: those of the recording, and files that the user names.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "cli/options.h"
#include "recording/recording.h"
#include "symbolizer/load.h"

namespace xenoscope::cli {

struct SymbolOptions {
  std::vector<std::string> kernels;  // "[DOMAIN=]FILE"
  std::vector<std::string> images;
  std::vector<std::string> guests;  // "DOMAIN:KEY=VALUE,..."
  std::vector<std::string> xen;
  std::string symfs;
  std::string debuginfod;           // URLs; empty: those of the environment
  std::string directory;            // where relative paths begin; empty: the current one
  std::vector<std::string> config;  // files; empty: those of the user and the host
  bool no_cache = false;
  bool Given() const {
    return !kernels.empty() || !images.empty() || !guests.empty() || !xen.empty();
  }
};

// Adds --kernel, --image, --xen-syms, --guest, --symfs, --debuginfod, --config and
// --no-cache to a command. `options` must outlive it.
void AddSymbolOptions(Command command, SymbolOptions& options);

// Returns the files and roots that the user named: first those of the command line, then those of
// --config files, in which domains that are not in the recording are ignored. Errors: an unknown
// domain, an invalid word in --guest, a damaged --config file.
absl::StatusOr<symbolizer::SymbolSources> NamedSources(const SymbolOptions& options,
                                                       const recording::RecordingInfo* info);

// Loads the symbols. Prints warnings to stderr. Errors: a file that the user named cannot be used,
// or its domain is unknown.
absl::StatusOr<symbolizer::LoadedSymbols> LoadSymbols(
    const SymbolOptions& options, const std::optional<recording::Recording>& recording);

}  // namespace xenoscope::cli
