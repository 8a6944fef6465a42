#include "cli/symbol_options.h"

#include <fmt/format.h>

#include <cstdio>
#include <filesystem>
#include <utility>

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
}

absl::StatusOr<symbolizer::LoadedSymbols> LoadSymbols(
    const SymbolOptions& options, const std::optional<recording::Recording>& recording) {
  symbolizer::SymbolSources sources;
  const recording::RecordingInfo* info = nullptr;
  if (recording) {
    sources = symbolizer::SourcesInRecording(recording->path());
    info = &recording->info();
  }
  XENOSCOPE_RETURN_IF_ERROR(
      AddGiven(info, options.kernels, symbolizer::SourceKind::kKernel, sources));
  XENOSCOPE_RETURN_IF_ERROR(
      AddGiven(info, options.images, symbolizer::SourceKind::kImage, sources));
  XENOSCOPE_ASSIGN_OR_RETURN(symbolizer::LoadedSymbols symbols, symbolizer::LoadSymbols(sources));
  for (const std::string& warning : symbols.warnings) {
    fmt::print(stderr, "xenoscope: {}\n", warning);
  }
  return symbols;
}

}  // namespace xenoscope::cli
