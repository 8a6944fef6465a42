// Which files of a recording's directory are symbols, and of what.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <string_view>

#include "symbolizer/load.h"

namespace xenoscope::symbolizer {
namespace {

namespace fs = std::filesystem;

// The file, or it with ".zst", or nothing.
std::optional<std::string> Existing(const fs::path& path) {
  std::error_code ignored;
  for (const char* suffix : {"", ".zst"}) {
    fs::path candidate = path;
    candidate += suffix;
    if (fs::is_regular_file(candidate, ignored)) return candidate.string();
  }
  return std::nullopt;
}

// What is in a directory, in order of name; nothing when it cannot be read.
std::vector<fs::path> Entries(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::string WithoutZst(const fs::path& path) {
  return path.extension() == ".zst" ? path.stem().string() : path.filename().string();
}

void AddFiles(const fs::path& directory, DomainId domain, SymbolSources& sources) {
  // Kallsyms first: it has modules, and the addresses of the boot that was recorded.
  for (const char* name : {"kallsyms", "System.map", "vmlinux"}) {
    if (auto path = Existing(directory / name)) {
      sources.sources.push_back({domain, SourceKind::kKernel, *std::move(path)});
    }
  }
  if (auto path = Existing(directory / "modules")) {
    sources.sources.push_back({domain, SourceKind::kModules, *std::move(path)});
  }
  for (const fs::path& images : {directory, directory / "images"}) {
    for (const fs::path& path : Entries(images)) {
      const std::string name = WithoutZst(path);
      if (name == "kallsyms" || name == "System.map" || name == "vmlinux" || name == "modules") {
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
  if (auto path = Existing(root / "symbols" / "dom0.kallsyms")) {
    sources.sources.push_back({kDom0, SourceKind::kKernel, *std::move(path)});
  }
  if (auto path = Existing(root / "symbols" / "dom0.modules")) {
    sources.sources.push_back({kDom0, SourceKind::kModules, *std::move(path)});
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
