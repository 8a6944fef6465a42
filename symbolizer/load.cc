#include "symbolizer/load.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/error.h"
#include "symbolizer/elf/build_id.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/elf_symbols.h"
#include "symbolizer/elf/module_file.h"
#include "symbolizer/file_content.h"
#include "symbolizer/file_finder.h"
#include "symbolizer/image_file.h"
#include "symbolizer/livepatches.h"
#include "symbolizer/text/perf_maps.h"
#include "symbolizer/text/symbol_lines.h"
#include "symbolizer/text/text_symbols.h"

namespace xenoscope::symbolizer {
namespace {

// Returns the image's name: "busybox" for "guests/3/images/busybox.zst".
std::string ImageName(const std::string& path) {
  return std::string(WithoutCompression(std::filesystem::path(path).filename().string()));
}

// Returns whether it is a Linux boot image, by its protocol (Documentation/arch/x86/boot.rst):
// "HdrS" at 0x202.
bool IsBootImage(std::string_view content) {
  constexpr size_t kMagicAt = 0x202;
  return content.size() > kMagicAt && content.substr(kMagicAt).starts_with("HdrS");
}

// Returns whether the first line that is a symbol has a type, as nm's lines have.
bool HasTypes(std::string_view text) {
  constexpr int kLinesLookedAt = 16;
  for (int i = 0; i < kLinesLookedAt && !text.empty(); ++i) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (ParseSymbolLine(line, LineShape::kTyped)) return true;
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return false;
}

// The loader of all sources.
class Loader {
 public:
  absl::Status Load(const SymbolSources& sources) {
    cache_ = sources.cache;
    server_ = sources.server;
    resolver_->processes().SetCache(cache_);
    resolver_->modules().SetCache(cache_);
    for (const KernelRelease& kernel : sources.kernels) {
      resolver_->SetKernelRelease(kernel.domain, kernel.release);
    }
    resolver_->processes().SetServer(server_);
    for (const SymbolSource& source : sources.sources) {
      if (source.kind == SourceKind::kModules) {
        XENOSCOPE_RETURN_IF_ERROR(Checked(source, LoadModules(source)));
      }
    }
    resolver_->processes().SetImages(sources.images);
    for (const SymbolRoot& root : sources.roots) {
      resolver_->processes().SetRoot(root.domain, root.directory);
    }
    for (const SymbolSource& source : sources.sources) {
      if (source.kind != SourceKind::kModules) {
        XENOSCOPE_RETURN_IF_ERROR(Checked(source, LoadSource(source)));
      }
    }
    for (DeferredElf& waiting : std::exchange(deferred_elfs_, {})) {
      XENOSCOPE_RETURN_IF_ERROR(
          Checked(*waiting.source, LoadElf(*waiting.source, std::move(waiting.file))));
    }
    return AddLivepatches();
  }

  LoadedSymbols Take() && { return {std::move(resolver_), std::move(warnings_)}; }

 private:
  // An ELF file of a kernel or Xen, which is handled after all texts.
  struct DeferredElf {
    const SymbolSource* source = nullptr;
    FileContent file;
  };

  // Turns the error of a source that is not required into a warning.
  absl::Status Checked(const SymbolSource& source, const absl::Status& status) {
    if (status.ok()) return status;
    absl::Status in_file = InContext(status, source.path);
    if (source.required) return in_file;
    warnings_.emplace_back(Message(in_file));
    if (source.kind == SourceKind::kXen || source.kind == SourceKind::kKernel ||
        source.kind == SourceKind::kImage) {
      resolver_->SetMissingReason(source.domain, ModeOf(source.kind), warnings_.back());
    }
    return absl::OkStatus();
  }

  static Mode ModeOf(SourceKind kind) {
    if (kind == SourceKind::kXen) return Mode::kXen;
    const bool of_kernel = kind == SourceKind::kKernel || kind == SourceKind::kModules ||
                           kind == SourceKind::kModuleFile;
    return of_kernel ? Mode::kKernel : Mode::kUser;
  }

  absl::Status LoadModules(const SymbolSource& source) {
    XENOSCOPE_ASSIGN_OR_RETURN(const FileContent file, FileContent::Open(source.path));
    ModuleList list = ReadModules(AsText(file.bytes()));
    modules_[source.domain] = std::move(list.modules);
    if (list.hidden > 0) {
      return PreconditionError("kptr_restrict hides the addresses of {} modules", list.hidden);
    }
    if (list.malformed > 0)
      return InvalidError("{} lines are not of /proc/modules", list.malformed);
    return absl::OkStatus();
  }

  absl::StatusOr<SymbolTable> ReadText(const SymbolSource& source, std::string_view text) {
    if (IsBootImage(text)) {
      return InvalidError(
          "it is a compressed kernel, which has no symbols: give its /proc/kallsyms or vmlinux");
    }
    switch (source.kind) {
      case SourceKind::kXen:
        return ReadXensyms(text);
      case SourceKind::kKernel:
        if (HasTypes(text)) return ReadKallsyms(text, modules_[source.domain]);
        return ReadAddressNames(text, kKernelImage);
      case SourceKind::kImage:
      case SourceKind::kModuleFile:
      case SourceKind::kModules:
      case SourceKind::kVdso:
      case SourceKind::kPerfMaps:
        break;
    }
    const std::string image = ImageName(source.path);
    return HasTypes(text) ? ReadNm(text, image) : ReadAddressNames(text, image);
  }

  absl::Status LoadSource(const SymbolSource& source) {
    XENOSCOPE_ASSIGN_OR_RETURN(FileContent file, FileContent::Open(source.path));
    if (source.kind == SourceKind::kVdso) {
      return resolver_->processes().SetVdso(source.domain, std::move(file));
    }
    if (source.kind == SourceKind::kModuleFile) {
      XENOSCOPE_ASSIGN_OR_RETURN(std::shared_ptr<const ModuleFile> module,
                                 ModuleFile::Open(std::move(file), source.path));
      resolver_->modules().AddFile(source.domain, std::move(module));
      return absl::OkStatus();
    }
    if (source.kind == SourceKind::kPerfMaps) {
      PerfMaps maps = PerfMaps::Read(AsText(file.bytes()));
      WarnOfMalformed(source, maps.lines(), "lines");
      if (maps.cut())
        Warn(source, "the processes' maps were too long: some functions have no names");
      resolver_->processes().SetPerfMaps(source.domain, std::move(maps));
      return absl::OkStatus();
    }
    if (IsElf(file.bytes())) {
      if (source.kind == SourceKind::kImage) return LoadElf(source, std::move(file));
      const bool is_livepatch = source.kind == SourceKind::kXen && IsOfLivepatches(file.bytes());
      (is_livepatch ? livepatch_files_ : deferred_elfs_).push_back({&source, std::move(file)});
      return absl::OkStatus();
    }
    if (source.kind == SourceKind::kXen && HasLivepatchList(AsText(file.bytes()))) {
      livepatch_lists_.push_back(&source);
      livepatch_text_ += fmt::format("{}\n", AsText(file.bytes()));
      return absl::OkStatus();
    }
    XENOSCOPE_ASSIGN_OR_RETURN(const SymbolTable table, ReadText(source, AsText(file.bytes())));
    WarnOfMalformed(source, table.lines, "lines");
    return AddTable(source, table).status();
  }

  absl::Status LoadElf(const SymbolSource& source, FileContent file) {
    XENOSCOPE_ASSIGN_OR_RETURN(
        std::shared_ptr<ImageFile> image,
        ImageFile::Open(std::move(file), source.path, FileFinder("/", "", server_), cache_));
    const ElfFile& elf = image->elf();
    const std::string build_id = elf.BuildId();
    if (source.kind == SourceKind::kImage) {
      const std::string id = build_id.empty() ? ContentIdOf(image->content()) : build_id;
      resolver_->processes().AddSubstitute(id, source.path);
      // A program that the user names may be in the recording, too.
      if (!programs_.insert({source.domain, source.load_bias, id}).second) return absl::OkStatus();
    }
    const bool other_build =
        !source.build_id.empty() && !build_id.empty() && build_id != source.build_id;
    if (other_build) {
      Warn(source, "its build-id is {}, but {} ran: {}", build_id, source.build_id,
           HasFunctions(source) ? "it is not used" : "its names may be wrong");
      if (HasFunctions(source)) return absl::OkStatus();
    }
    absl::StatusOr<ElfSymbols> read = image->ReadSymbols(ElfImageName(source));
    if (!read.ok()) {
      if (source.kind == SourceKind::kImage && image->unwind_table() != nullptr) {
        return AddWithoutNames(source, read.status(), std::move(image));
      }
      // A kernel out of its boot image has code and tables for unwinding.
      if (source.kind != SourceKind::kKernel || !HasFunctions(source)) return read.status();
      read = WithoutSymbols(elf, first_[Space(source)]);
    }
    const ElfSymbols& symbols = *read;
    WarnOfMalformed(source, symbols.table.lines, "symbols");
    if (symbols.only_dynamic) {
      Warn(source, "it was stripped: only functions that it exports have names");
    }
    if (elf.position_independent() && source.kind == SourceKind::kImage && source.load_bias == 0) {
      Warn(source,
           "it runs wherever it was loaded, and no load address was given: its functions are found "
           "only where the recording says where it was (source vcpu with -g, agents)");
    }
    XENOSCOPE_ASSIGN_OR_RETURN(const std::optional<Address> bias, AddTable(source, symbols.table));
    if (!bias) return absl::OkStatus();
    if (source.kind == SourceKind::kKernel && first_[Space(source)].path == source.path) {
      resolver_->SetMayBeRelocated(source.domain);
    }
    resolver_->AddFile(source.domain, ModeOf(source.kind), std::move(image), *bias);
    return absl::OkStatus();
  }

  // Adds a program without names of functions: call chains go through it.
  absl::Status AddWithoutNames(const SymbolSource& source, const absl::Status& why,
                               std::shared_ptr<ImageFile> image) {
    Warn(source, "{}; call chains are unwound through it", Message(why));
    resolver_->SetMissingReason(source.domain, Mode::kUser, warnings_.back());
    resolver_->AddFile(source.domain, Mode::kUser, std::move(image), source.load_bias);
    return absl::OkStatus();
  }

  struct LivepatchFile {
    ElfFile elf;  // the file, which holds the names
    std::vector<Symbol> symbols;
  };

  // To be called after all others: statements about Xen as a whole belong to its first source.
  absl::Status AddLivepatches() {
    LivepatchList list = ReadLivepatches(livepatch_text_);
    if (list.malformed > 0) {
      Warn(*livepatch_lists_.front(), "{} lines about livepatches are damaged", list.malformed);
    }
    if (list.displaced > 0) {
      Warn(
          *livepatch_lists_.front(),
          "{} livepatches lay where another one did before or after: their functions have no names",
          list.displaced);
    }
    std::vector<std::optional<LivepatchFile>> files(list.patches.size());
    for (const DeferredElf& waiting : livepatch_files_) {
      XENOSCOPE_RETURN_IF_ERROR(
          Checked(*waiting.source, ReadLivepatchFile(waiting, list.patches, files)));
    }
    SymbolTable table;
    for (size_t i = 0; i < list.patches.size(); ++i) {
      const Livepatch& patch = list.patches[i];
      const auto image = static_cast<uint32_t>(table.images.size());
      table.images.push_back(fmt::format("[livepatch {}]", patch.name));
      const size_t first = table.functions.size();
      if (files[i]) {
        table.functions.insert(table.functions.end(), files[i]->symbols.begin(),
                               files[i]->symbols.end());
      } else {
        for (const LivepatchFunction& function : patch.functions) {
          table.functions.push_back(
              {.address = function.address, .size = function.size, .name = function.name});
        }
      }
      for (size_t at = first; at < table.functions.size(); ++at) table.functions[at].image = image;
      resolver_->AddPart(kDom0, Mode::kXen, table.images.back(), patch.begin, patch.end,
                         fmt::format("code of the livepatch {} that takes no function's place; its "
                                     "file has the names: --xen-syms FILE",
                                     patch.name));
    }
    if (table.functions.empty()) return absl::OkStatus();
    XENOSCOPE_ASSIGN_OR_RETURN(SymbolIndex index, SymbolIndex::Build(table));
    resolver_->Add(kDom0, Mode::kXen, std::make_shared<const SymbolIndex>(std::move(index)), 0,
                   livepatch_lists_.front()->path);
    return absl::OkStatus();
  }

  // Reads the functions of a livepatch's file, if the livepatch was loaded.
  static absl::Status ReadLivepatchFile(const DeferredElf& file,
                                        const std::vector<Livepatch>& patches,
                                        std::vector<std::optional<LivepatchFile>>& files) {
    XENOSCOPE_ASSIGN_OR_RETURN(ElfFile elf, ElfFile::OpenAny(file.file.bytes()));
    const std::string build_id = elf.BuildId();
    const auto patch = std::ranges::find(patches, build_id, &Livepatch::build_id);
    if (build_id.empty() || patch == patches.end()) {
      return NotFoundError("no livepatch with its build-id {} is known to have been loaded",
                           build_id);
    }
    XENOSCOPE_ASSIGN_OR_RETURN(ElfSymbols symbols,
                               ReadLivepatchElf(elf, patch->name, patch->begin));
    absl::flat_hash_set<Address> begins;
    for (const Symbol& symbol : symbols.table.functions) begins.insert(symbol.address);
    for (const LivepatchFunction& function : patch->functions) {
      if (!begins.contains(function.address)) {
        return InvalidError("its functions are not where Xen has those of the livepatch {}",
                            patch->name);
      }
    }
    files[static_cast<size_t>(patch - patches.begin())] = {std::move(elf),
                                                           std::move(symbols.table.functions)};
    return absl::OkStatus();
  }

  // Adds the functions, unless a better source gave them. Returns the bias at which the source
  // fits; nothing, after a warning, when it does not fit.
  absl::StatusOr<std::optional<Address>> AddTable(const SymbolSource& source,
                                                  const SymbolTable& table) {
    const Mode mode = ModeOf(source.kind);
    if (HasFunctions(source)) return Fit(source, table);
    XENOSCOPE_ASSIGN_OR_RETURN(SymbolIndex index, SymbolIndex::Build(table));
    resolver_->Add(source.domain, mode, std::make_shared<const SymbolIndex>(std::move(index)),
                   source.load_bias, source.path);
    if (mode != Mode::kUser) {
      first_[Space(source)] = {source.path, table.stext, table.etext, source.load_bias};
    }
    return source.load_bias;
  }

  // Returns the distance from this source to the first source of a kernel or Xen.
  std::optional<Address> Fit(const SymbolSource& source, const SymbolTable& table) {
    const TextRange& first = first_[Space(source)];
    if (!first.stext || !table.stext) {
      Warn(source, "it is not used: without _stext in it and in {} their distance is unknown",
           first.path);
      return std::nullopt;
    }
    const Address bias = *first.stext + first.bias - *table.stext;
    const bool same_length =
        !first.etext || !table.etext || *first.etext - *first.stext == *table.etext - *table.stext;
    if (!same_length || (source.kind == SourceKind::kXen && bias != 0)) {
      Warn(source, "it is of another build than {} and not used", first.path);
      return std::nullopt;
    }
    return bias;
  }

  // Returns whether there are functions already: a kernel or Xen has one source of them, user mode
  // any number.
  bool HasFunctions(const SymbolSource& source) const { return first_.contains(Space(source)); }

  static std::pair<Mode, DomainId> Space(const SymbolSource& source) {
    const Mode mode = ModeOf(source.kind);
    return {mode, mode == Mode::kXen ? kDom0 : source.domain};
  }

  static std::string ElfImageName(const SymbolSource& source) {
    if (source.kind == SourceKind::kXen) return std::string(kXenImage);
    if (source.kind == SourceKind::kKernel) return std::string(kKernelImage);
    return ImageName(source.path);
  }

  void WarnOfMalformed(const SymbolSource& source, const LineCounts& counts,
                       std::string_view what) {
    if (counts.malformed == 0) return;
    Warn(source, "{} {} are damaged or no symbols, the first is number {}", counts.malformed, what,
         counts.first_malformed_at);
  }

  template <typename... Args>
  void Warn(const SymbolSource& source, fmt::format_string<Args...> format, Args&&... args) {
    warnings_.push_back(
        fmt::format("{}: {}", source.path, fmt::format(format, std::forward<Args>(args)...)));
  }

  // The range of the text by the first source of a kernel or Xen.
  struct TextRange {
    std::string path;
    std::optional<Address> stext;
    std::optional<Address> etext;
    Address bias = 0;
  };

  // Returns what is known of a kernel's file without symbols: its section .text begins with _stext,
  // and reaches from _etext to the end of the page, which may be a large one
  // (arch/x86/kernel/vmlinux.lds.S). `first` is the text that another source has.
  static ElfSymbols WithoutSymbols(const ElfFile& elf, const TextRange& first) {
    constexpr const char* kText = ".text";
    constexpr Address kLargePage = Address{2} << 20;
    ElfSymbols symbols;
    Address length = elf.Section(kText).size();
    if (length == 0) return symbols;
    if (first.stext && first.etext) {
      const Address wanted = *first.etext - *first.stext;
      if (wanted <= length && length - wanted < kLargePage) length = wanted;
    }
    symbols.table.stext = elf.AddressOfSection(kText);
    symbols.table.etext = *symbols.table.stext + length;
    return symbols;
  }

  std::shared_ptr<const IndexCache> cache_;
  std::shared_ptr<DebugServer> server_;
  std::vector<DeferredElf> deferred_elfs_;
  std::vector<const SymbolSource*> livepatch_lists_;
  std::string livepatch_text_;  // the texts of all lists
  std::vector<DeferredElf> livepatch_files_;
  absl::flat_hash_map<std::pair<Mode, DomainId>, TextRange> first_;
  // Programs that were added: domain, where they were loaded, build-id or content id.
  absl::flat_hash_set<std::tuple<DomainId, Address, std::string>> programs_;
  std::unique_ptr<DomainSymbols> resolver_ = std::make_unique<DomainSymbols>();
  std::vector<std::string> warnings_;
  absl::flat_hash_map<DomainId, std::vector<Module>> modules_;
};

}  // namespace

bool IsOfLivepatches(Bytes content) {
  if (!IsElf(content)) return HasLivepatchList(AsText(content));
  const absl::StatusOr<ElfFile> elf = ElfFile::OpenAny(content);
  return elf.ok() && IsLivepatch(*elf);
}

absl::StatusOr<LoadedSymbols> LoadSymbols(const SymbolSources& sources) {
  Loader loader;
  XENOSCOPE_RETURN_IF_ERROR(loader.Load(sources));
  return std::move(loader).Take();
}

}  // namespace xenoscope::symbolizer
