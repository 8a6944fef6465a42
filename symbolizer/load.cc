#include "symbolizer/load.h"

#include <fmt/format.h>

#include <filesystem>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/error.h"
#include "symbolizer/file_content.h"
#include "symbolizer/symbol_lines.h"
#include "symbolizer/text_symbols.h"

namespace xenoscope::symbolizer {
namespace {

// "guests/3/images/busybox.zst" is of the image "busybox".
std::string ImageName(const std::string& path) {
  const std::filesystem::path name = std::filesystem::path(path).filename();
  return name.extension() == ".zst" ? name.stem().string() : name.string();
}

// Whether the first line that is a symbol has a type, as nm's have.
bool HasTypes(std::string_view text) {
  constexpr int kLinesLookedAt = 16;
  for (int i = 0; i < kLinesLookedAt && !text.empty(); ++i) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (ParseSymbolLine(line, LineShape::kTyped)) return true;
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return false;
}

class Loader {
 public:
  absl::Status Load(const SymbolSources& sources) {
    for (const SymbolSource& source : sources.sources) {
      if (source.kind == SourceKind::kModules) {
        XENOSCOPE_RETURN_IF_ERROR(Checked(source, LoadModules(source)));
      }
    }
    for (const SymbolSource& source : sources.sources) {
      if (source.kind != SourceKind::kModules) {
        XENOSCOPE_RETURN_IF_ERROR(Checked(source, LoadSource(source)));
      }
    }
    return absl::OkStatus();
  }

  LoadedSymbols Take() && { return {std::move(resolver_), std::move(warnings_)}; }

 private:
  // Turns the error of a source that nobody insisted on into a warning.
  absl::Status Checked(const SymbolSource& source, const absl::Status& status) {
    if (status.ok()) return status;
    absl::Status in_file = InContext(status, source.path);
    if (source.required) return in_file;
    warnings_.emplace_back(Message(in_file));
    if (source.kind != SourceKind::kModules) {
      resolver_->SayWhyNone(source.domain, ModeOf(source.kind), warnings_.back());
    }
    return absl::OkStatus();
  }

  static Mode ModeOf(SourceKind kind) {
    if (kind == SourceKind::kXen) return Mode::kXen;
    return kind == SourceKind::kImage ? Mode::kUser : Mode::kKernel;
  }

  absl::Status LoadModules(const SymbolSource& source) {
    XENOSCOPE_ASSIGN_OR_RETURN(const FileContent file, FileContent::Open(source.path));
    ModuleList list = ReadModules(AsText(file.bytes()));
    modules_[source.domain] = std::move(list.modules);
    if (list.hidden > 0) {
      return PreconditionError("kptr_restrict hides the addresses of {} modules", list.hidden);
    }
    if (list.junk > 0) return InvalidError("{} lines are not of /proc/modules", list.junk);
    return absl::OkStatus();
  }

  absl::StatusOr<SymbolTable> ReadText(const SymbolSource& source, std::string_view text) {
    switch (source.kind) {
      case SourceKind::kXen:
        return ReadXensyms(text);
      case SourceKind::kKernel:
        if (HasTypes(text)) return ReadKallsyms(text, modules_[source.domain]);
        return ReadAddressNames(text, kKernelImage);
      case SourceKind::kImage:
      case SourceKind::kModules:
        break;
    }
    const std::string image = ImageName(source.path);
    return HasTypes(text) ? ReadNm(text, image) : ReadAddressNames(text, image);
  }

  absl::Status LoadSource(const SymbolSource& source) {
    XENOSCOPE_ASSIGN_OR_RETURN(const FileContent file, FileContent::Open(source.path));
    XENOSCOPE_ASSIGN_OR_RETURN(const SymbolTable table, ReadText(source, AsText(file.bytes())));
    if (table.lines.junk > 0) {
      warnings_.push_back(fmt::format("{}: {} lines are not symbols, the first is line {}",
                                      source.path, table.lines.junk, table.lines.first_junk_at));
    }
    XENOSCOPE_ASSIGN_OR_RETURN(SymbolIndex index, SymbolIndex::Build(table));
    resolver_->Add(source.domain, ModeOf(source.kind),
                   std::make_shared<const SymbolIndex>(std::move(index)), source.load_bias);
    return absl::OkStatus();
  }

  std::unique_ptr<DomainSymbols> resolver_ = std::make_unique<DomainSymbols>();
  std::vector<std::string> warnings_;
  absl::flat_hash_map<DomainId, std::vector<Module>> modules_;
};

}  // namespace

absl::StatusOr<LoadedSymbols> LoadSymbols(const SymbolSources& sources) {
  Loader loader;
  XENOSCOPE_RETURN_IF_ERROR(loader.Load(sources));
  return std::move(loader).Take();
}

}  // namespace xenoscope::symbolizer
