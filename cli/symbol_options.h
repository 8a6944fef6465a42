// Symbols for a report: those of the recording, and files that the user names.
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

// The files and roots that the user named, the better ones first: on the command line, then in the
// files of --config, where domains that are not in the recording are passed over. Errors: a domain
// that is unknown, words that are none of --guest's, a file of --config that is damaged.
absl::StatusOr<symbolizer::SymbolSources> NamedSources(const SymbolOptions& options,
                                                       const recording::RecordingInfo* info);

// Prints warnings to stderr. Errors: a file that the user named cannot be
// used, or the domain before it is unknown.
absl::StatusOr<symbolizer::LoadedSymbols> LoadSymbols(
    const SymbolOptions& options, const std::optional<recording::Recording>& recording);

}  // namespace xenoscope::cli
