#include "cli/symbol_options.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/error.h"
#include "cli/domain_names.h"

namespace xenoscope::cli {
namespace {

// Puts the sources that the user named before those of the recording.
absl::Status AddGiven(const recording::RecordingInfo* info, const std::vector<std::string>& given,
                      symbolizer::SourceKind kind, symbolizer::SymbolSources& sources) {
  for (const std::string& text : given) {
    symbolizer::SymbolSource source;
    source.domain = symbolizer::kEveryDomain;
    source.kind = kind;
    source.path = text;
    source.required = true;
    const size_t equals = text.find('=');
    if (std::error_code ignored;
        equals != std::string::npos && !std::filesystem::exists(text, ignored)) {
      XENOSCOPE_ASSIGN_OR_RETURN(source.domain, ChooseDomain(info, text.substr(0, equals)));
      source.path = text.substr(equals + 1);
    }
    sources.sources.insert(sources.sources.begin(), std::move(source));
  }
  return absl::OkStatus();
}

// "web1:kernel=vmlinux,modules=FILE,root=DIR,exe=FILE"
absl::Status AddGuest(const recording::RecordingInfo* info, const std::string& text,
                      symbolizer::SymbolSources& sources) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) {
    return InvalidError("--guest {}: it wants DOMAIN:KEY=VALUE,...", text);
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const DomainId domain, ChooseDomain(info, text.substr(0, colon)));
  const std::vector<std::string> fields = absl::StrSplit(text.substr(colon + 1), ',');
  for (const std::string& field : fields) {
    const size_t equals = field.find('=');
    const std::string key = field.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : field.substr(equals + 1);
    symbolizer::SymbolSource source{.domain = domain, .path = value, .required = true};
    if (value.empty()) return InvalidError("--guest {}: {} has no value", text, key);
    if (key == "root") {
      sources.roots.push_back({domain, value});
      continue;
    }
    if (key == "kernel" || key == "kallsyms") {
      source.kind = symbolizer::SourceKind::kKernel;
    } else if (key == "modules") {
      source.kind = symbolizer::SourceKind::kModules;
    } else if (key == "exe") {
      source.kind = symbolizer::SourceKind::kImage;
    } else {
      return InvalidError("--guest {}: no {}; there are kernel, kallsyms, modules, root and exe",
                          text, key);
    }
    sources.sources.insert(sources.sources.begin(), std::move(source));
  }
  return absl::OkStatus();
}

}  // namespace

void AddSymbolOptions(CLI::App& command, SymbolOptions& options) {
  command
      .add_option("--kernel,--symbols", options.kernels,
                  "[DOMAIN=]FILE: a kernel's kallsyms, System.map or vmlinux; without a domain: of "
                  "all that have none of their own")
      ->allow_extra_args(false);
  command
      .add_option("--image", options.images,
                  "[DOMAIN=]FILE: symbols of a program that runs in the domain: an ELF file, or "
                  "what nm prints")
      ->allow_extra_args(false);
  command.add_option("--xen-syms", options.xen, "FILE: Xen's xensyms, or its ELF file xen-syms");
  command
      .add_option("--guest", options.guests,
                  "DOMAIN:kernel=FILE,kallsyms=FILE,modules=FILE,root=DIR,exe=FILE: all of one "
                  "domain; root is where its file system is mounted or was copied to")
      ->allow_extra_args(false);
  command
      .add_option("--symfs", options.symfs,
                  "DIR: files that processes ran are below it, not on this machine")
      ->check(CLI::ExistingDirectory);
}

absl::StatusOr<symbolizer::SymbolSources> NamedSources(const SymbolOptions& options,
                                                       const recording::RecordingInfo* info) {
  symbolizer::SymbolSources sources;
  XENOSCOPE_RETURN_IF_ERROR(
      AddGiven(info, options.kernels, symbolizer::SourceKind::kKernel, sources));
  XENOSCOPE_RETURN_IF_ERROR(
      AddGiven(info, options.images, symbolizer::SourceKind::kImage, sources));
  if (!options.xen.empty()) {
    sources.sources.insert(sources.sources.begin(), {.domain = kDom0,
                                                     .kind = symbolizer::SourceKind::kXen,
                                                     .path = options.xen,
                                                     .required = true});
  }
  for (const std::string& guest : options.guests) {
    XENOSCOPE_RETURN_IF_ERROR(AddGuest(info, guest, sources));
  }
  if (!options.symfs.empty()) sources.roots.push_back({symbolizer::kEveryDomain, options.symfs});
  return sources;
}

absl::StatusOr<symbolizer::LoadedSymbols> LoadSymbols(
    const SymbolOptions& options, const std::optional<recording::Recording>& recording) {
  XENOSCOPE_ASSIGN_OR_RETURN(symbolizer::SymbolSources sources,
                             NamedSources(options, recording ? &recording->info() : nullptr));
  if (recording) {
    symbolizer::SymbolSources recorded = symbolizer::SourcesInRecording(recording->path());
    sources.sources.insert(sources.sources.end(), recorded.sources.begin(), recorded.sources.end());
    sources.images = std::move(recorded.images);
  }
  XENOSCOPE_ASSIGN_OR_RETURN(symbolizer::LoadedSymbols symbols, symbolizer::LoadSymbols(sources));
  for (const std::string& warning : symbols.warnings) {
    fmt::print(stderr, "xenoscope: {}\n", warning);
  }
  return symbols;
}

}  // namespace xenoscope::cli
