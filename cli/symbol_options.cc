#include "cli/symbol_options.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <memory>
#include <utility>

#include "absl/strings/str_split.h"
#include "base/error.h"
#include "cli/domain_names.h"
#include "cli/symbol_config.h"

namespace xenoscope::cli {
namespace {

constexpr const char* kNoServer = "none";

// Whether what the user wrote is for this recording at all.
enum class Required : bool {
  kNo,   // in a file for all recordings: what is not of this one is passed over
  kYes,  // on the command line
};

// Puts the sources that the user named before those that are there.
absl::Status AddGiven(const recording::RecordingInfo* info, const std::vector<std::string>& given,
                      symbolizer::SourceKind kind, Required required,
                      symbolizer::SymbolSources& sources) {
  for (const std::string& text : given) {
    symbolizer::SymbolSource source;
    source.domain = symbolizer::kEveryDomain;
    source.kind = kind;
    source.path = text;
    source.required = required == Required::kYes;
    const size_t equals = text.find('=');
    if (std::error_code ignored;
        equals != std::string::npos && !std::filesystem::exists(text, ignored)) {
      const auto domain = ChooseDomain(info, text.substr(0, equals));
      if (!domain.ok() && required == Required::kNo) continue;
      if (!domain.ok()) return domain.status();
      source.domain = *domain;
      source.path = text.substr(equals + 1);
    }
    sources.sources.insert(sources.sources.begin(), std::move(source));
  }
  return absl::OkStatus();
}

// "web1:kernel=vmlinux,modules=FILE,root=DIR,module=FILE,exe=FILE"
absl::Status AddGuest(const recording::RecordingInfo* info, const std::string& text,
                      Required required, symbolizer::SymbolSources& sources) {
  const size_t colon = text.find(':');
  if (colon == std::string::npos) {
    return InvalidError("--guest {}: expected DOMAIN:KEY=VALUE,...", text);
  }
  const auto chosen = ChooseDomain(info, text.substr(0, colon));
  if (!chosen.ok() && required == Required::kNo) return absl::OkStatus();
  if (!chosen.ok()) return chosen.status();
  const DomainId domain = *chosen;
  const std::vector<std::string> fields = absl::StrSplit(text.substr(colon + 1), ',');
  for (const std::string& field : fields) {
    const size_t equals = field.find('=');
    const std::string key = field.substr(0, equals);
    const std::string value = equals == std::string::npos ? "" : field.substr(equals + 1);
    symbolizer::SymbolSource source{
        .domain = domain, .path = value, .required = required == Required::kYes};
    if (value.empty()) return InvalidError("--guest {}: give a value for {}", text, key);
    if (key == "root") {
      sources.roots.push_back({domain, value});
      continue;
    }
    if (key == "kernel" || key == "kallsyms") {
      source.kind = symbolizer::SourceKind::kKernel;
    } else if (key == "modules") {
      source.kind = symbolizer::SourceKind::kModules;
    } else if (key == "module") {
      source.kind = symbolizer::SourceKind::kModuleFile;
    } else if (key == "exe") {
      source.kind = symbolizer::SourceKind::kImage;
    } else {
      return InvalidError(
          "--guest {}: there is no key '{}'; choose from kernel, kallsyms, modules, root, module, "
          "exe",
          text, key);
    }
    sources.sources.insert(sources.sources.begin(), std::move(source));
  }
  return absl::OkStatus();
}

// Adds all that the options name, before what `all` has of the same kind.
absl::Status AddAll(const SymbolOptions& options, const recording::RecordingInfo* info,
                    Required required, symbolizer::SymbolSources& all) {
  symbolizer::SymbolSources sources;
  XENOSCOPE_RETURN_IF_ERROR(
      AddGiven(info, options.kernels, symbolizer::SourceKind::kKernel, required, sources));
  XENOSCOPE_RETURN_IF_ERROR(
      AddGiven(info, options.images, symbolizer::SourceKind::kImage, required, sources));
  for (const std::string& file : options.xen) {
    sources.sources.insert(sources.sources.begin(), {.domain = kDom0,
                                                     .kind = symbolizer::SourceKind::kXen,
                                                     .path = file,
                                                     .required = required == Required::kYes});
  }
  for (const std::string& guest : options.guests) {
    XENOSCOPE_RETURN_IF_ERROR(AddGuest(info, guest, required, sources));
  }
  if (!options.symfs.empty()) sources.roots.push_back({symbolizer::kEveryDomain, options.symfs});
  const std::filesystem::path directory(options.directory);  // an absolute path replaces it
  for (symbolizer::SymbolSource& source : sources.sources) source.path = directory / source.path;
  for (symbolizer::SymbolRoot& root : sources.roots) root.directory = directory / root.directory;
  all.sources.insert(all.sources.begin(), std::make_move_iterator(sources.sources.begin()),
                     std::make_move_iterator(sources.sources.end()));
  all.roots.insert(all.roots.end(), std::make_move_iterator(sources.roots.begin()),
                   std::make_move_iterator(sources.roots.end()));
  return absl::OkStatus();
}

// A server that the user named, or whose name is in the environment, as elfutils' tools take it.
std::shared_ptr<symbolizer::DebugServer> ServerOf(const std::string& named) {
  if (named == kNoServer) return nullptr;
  std::string urls = named;
  if (urls.empty()) {
    // NOLINTNEXTLINE(concurrency-mt-unsafe): nobody changes the environment
    const char* from_environment = std::getenv("DEBUGINFOD_URLS");
    urls = from_environment == nullptr ? "" : from_environment;
  }
  if (urls.empty()) return nullptr;
  return std::make_shared<symbolizer::DebugServer>(urls, isatty(STDERR_FILENO) != 0);
}

}  // namespace

void AddSymbolOptions(Command command, SymbolOptions& options) {
  // What `push --symbols` names is of no domain, and stays in the store.
  const bool own_symbols = command.Name() == "push";
  command
      .AddOption(own_symbols ? "--kernel" : "--kernel,--symbols", options.kernels,
                 "[DOMAIN=]FILE: kallsyms, System.map or vmlinux of a kernel; without a domain: "
                 "for all domains without their own")
      .OneWordEach();
  command
      .AddOption(
          "--image", options.images,
          "[DOMAIN=]FILE: symbols of a program in the domain: an ELF file, or the output of nm")
      .OneWordEach();
  command
      .AddOption("--xen-syms", options.xen,
                 "FILE: Xen's xensyms or its ELF file xen-syms; for livepatches: their files, and "
                 "Xen's console output after `xl debug-keys x`")
      .OneWordEach();
  command
      .AddOption(
          "--guest", options.guests,
          "DOMAIN:KEY=VALUE,...: all symbol files of one domain. Keys: kernel, kallsyms, modules, "
          "exe; module: a .ko file of its kernel; root: directory where its file system is "
          "mounted or copied")
      .OneWordEach();
  command
      .AddOption("--symfs", options.symfs,
                 "DIR: look for the files of processes below this directory instead of /")
      .ExistingDirectory();
  command
      .AddOption("--debuginfod", options.debuginfod,
                 "URL: debuginfod server to ask for files by build-id; several: in quotes, "
                 "separated by spaces; none: ignore DEBUGINFOD_URLS too")
      .OneWordEach();
  command
      .AddOption("--config", options.config,
                 "FILE: file with symbol options, one per line; default: ~/.config/xenoscope.conf "
                 "and /etc/xenoscope.conf, if they exist")
      .ExistingFile()
      .OneWordEach();
  command.AddFlag("--no-cache", options.no_cache,
                  "Do not use the cache of debug information in ~/.cache/xenoscope");
}

absl::StatusOr<symbolizer::SymbolSources> NamedSources(const SymbolOptions& options,
                                                       const recording::RecordingInfo* info) {
  symbolizer::SymbolSources sources;
  // What is added later comes first: the host's, the user's, the command line's.
  std::vector<std::string> files = options.config.empty() ? SymbolConfigFiles() : options.config;
  std::ranges::reverse(files);
  std::string servers;
  for (const std::string& file : files) {
    XENOSCOPE_ASSIGN_OR_RETURN(const SymbolOptions configured, ReadSymbolConfig(file));
    const absl::Status added = AddAll(configured, info, Required::kNo, sources);
    if (!added.ok()) return InContext(added, file);
    if (!configured.debuginfod.empty()) servers = configured.debuginfod;
  }
  XENOSCOPE_RETURN_IF_ERROR(AddAll(options, info, Required::kYes, sources));
  sources.server = ServerOf(options.debuginfod.empty() ? servers : options.debuginfod);
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
    const recording::HostInfo& host = recording->info().host;
    if (!host.kernel.empty()) sources.kernels.push_back({kDom0, host.kernel});
  }
  if (auto directory = symbolizer::IndexCache::DefaultDirectory(); directory && !options.no_cache) {
    sources.cache = std::make_shared<const symbolizer::IndexCache>(*std::move(directory));
  }
  XENOSCOPE_ASSIGN_OR_RETURN(symbolizer::LoadedSymbols symbols, symbolizer::LoadSymbols(sources));
  for (const std::string& warning : symbols.warnings) {
    fmt::print(stderr, "xenoscope: {}\n", warning);
  }
  return symbols;
}

}  // namespace xenoscope::cli
