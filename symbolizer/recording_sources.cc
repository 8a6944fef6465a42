// The files of a recording's directory that hold symbols, and their kinds.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "symbolizer/file_content.h"
#include "symbolizer/load.h"

namespace xenoscope::symbolizer {
namespace {

namespace fs = std::filesystem;

// Returns the file, or the file with ".zst", or nothing.
std::optional<std::string> Existing(const fs::path& path) {
  std::error_code ignored;
  for (const char* suffix : {"", ".zst"}) {
    fs::path candidate = path;
    candidate += suffix;
    if (fs::is_regular_file(candidate, ignored)) return candidate.string();
  }
  return std::nullopt;
}

// Returns the entries of a directory in the order of names; none when it cannot be read.
std::vector<fs::path> Entries(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// kallsyms comes first: it has modules, and the addresses of the recorded boot.
constexpr std::array<std::string_view, 3> kKernels{"kallsyms", "System.map", "vmlinux"};
constexpr std::array<std::pair<std::string_view, SourceKind>, 3> kOthers{
    {{"modules", SourceKind::kModules},
     {"vdso", SourceKind::kVdso},
     {"perf-maps", SourceKind::kPerfMaps}}};

// A guest's file that is not of symbols (recording/info.h, kBootTrace).
constexpr std::string_view kNoSymbols = "boot-trace";

void AddFiles(const fs::path& directory, DomainId domain, SymbolSources& sources) {
  for (const std::string_view name : kKernels) {
    if (auto path = Existing(directory / name)) {
      sources.sources.push_back({domain, SourceKind::kKernel, *std::move(path)});
    }
  }
  for (const auto& [name, kind] : kOthers) {
    if (auto path = Existing(directory / name)) {
      sources.sources.push_back({domain, kind, *std::move(path)});
    }
  }
  for (const fs::path& path : Entries(directory / kModulesInRecording)) {
    sources.sources.push_back({domain, SourceKind::kModuleFile, path.string()});
  }
  for (const fs::path& images : {directory, directory / "images"}) {
    for (const fs::path& path : Entries(images)) {
      const std::string name(WithoutCompression(path.filename().string()));
      if (name == kNoSymbols || std::ranges::count(kKernels, name) > 0 ||
          std::ranges::count(kOthers, name, &std::pair<std::string_view, SourceKind>::first) > 0) {
        continue;
      }
      std::error_code ignored;
      if (!fs::is_regular_file(path, ignored)) continue;
      sources.sources.push_back({domain, SourceKind::kImage, path.string()});
    }
  }
}

}  // namespace

SymbolSources SourcesInRecording(const std::string& directory) {
  const fs::path root(directory);
  SymbolSources sources;
  sources.images = (root / kImagesInRecording).string();
  if (auto path = Existing(root / "symbols" / "xensyms")) {
    sources.sources.push_back({kDom0, SourceKind::kXen, *std::move(path)});
  }
  if (auto path = Existing(root / "symbols" / "xen-syms")) {
    sources.sources.push_back({kDom0, SourceKind::kXen, *std::move(path)});
  }
  for (const fs::path& path : Entries(root / "symbols" / "livepatches")) {
    sources.sources.push_back({kDom0, SourceKind::kXen, path.string()});
  }
  if (auto path = Existing(root / "symbols" / "dom0.kallsyms")) {
    sources.sources.push_back({kDom0, SourceKind::kKernel, *std::move(path)});
  }
  for (const auto& [name, kind] : kOthers) {
    if (auto path = Existing(root / "symbols" / fmt::format("dom0.{}", name))) {
      sources.sources.push_back({kDom0, kind, *std::move(path)});
    }
  }
  for (const fs::path& guest : Entries(root / "guests")) {
    const std::string name = guest.filename().string();
    DomainId domain;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), domain.value);
    if (error != std::errc() || end != name.data() + name.size()) continue;
    AddFiles(guest, domain, sources);
  }
  return sources;
}

}  // namespace xenoscope::symbolizer
