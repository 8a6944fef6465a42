#include "symbolizer/kernel_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace xenoscope::symbolizer {
namespace {

// Where a machine has the modules of its kernels. The first is a link where /lib is one; in an
// unpacked package of such a distribution there is only the second.
constexpr const char* kDirectories[] = {"/lib/modules", "/usr/lib/modules"};

constexpr size_t kMaxRelease = 64;  // bytes, as in struct new_utsname

// Returns the release in the text with which a kernel of Linux begins to print (linux_banner):
// "Linux version RELEASE (...". Empty: it is not there, or no name of a directory.
std::string ReleaseIn(std::string_view constants) {
  constexpr std::string_view kBanner = "Linux version ";
  const size_t at = constants.find(kBanner);
  if (at == std::string_view::npos) return {};
  std::string_view release = constants.substr(at + kBanner.size(), kMaxRelease + 1);
  release = release.substr(0, release.find(' '));
  return IsKernelRelease(release) ? std::string(release) : std::string();
}

// Returns why chains do not go on in the module of a file, or "".
std::string WhyNoChains(const std::string& path, const absl::Status& placed,
                        const UnwindTable* table) {
  if (!placed.ok()) return fmt::format("{}: {}", path, Message(placed));
  return table == nullptr ? fmt::format("{}: it has no ORC, or a damaged one", path) : "";
}

}  // namespace

bool IsKernelRelease(std::string_view release) {
  return !release.empty() && release.size() <= kMaxRelease &&
         release.find_first_of(std::string_view("/\0", 2)) == std::string_view::npos &&
         release != "." && release != "..";
}

ModuleKernel ModuleKernelOf(const ElfFile& vmlinux) {
  ModuleKernel kernel{.release = ReleaseIn(AsText(vmlinux.Section(".rodata"))), .layout = {}};
  if (const Bytes orc = vmlinux.Section(".orc_unwind"); !orc.empty()) {
    kernel.layout = OrcLayoutOf(orc);
  }
  return kernel;
}

void KernelModules::AddFile(DomainId domain, std::shared_ptr<const ModuleFile> file) {
  domains_[domain].given.push_back(std::move(file));
}

bool KernelModules::IsKnown(DomainId domain, std::string_view module) const {
  const auto of = domains_.find(domain);
  return of != domains_.end() && of->second.why_not.contains(module);
}

void KernelModules::Place(DomainId domain, const std::string& module,
                          std::span<const LoadedFunction> functions, const ModuleKernel& kernel,
                          const Finders& finders) {
  Domain& of = domains_[domain];
  std::string why_not;
  if (!PlaceGiven(module, functions, kernel, finders.here, of, why_not)) {
    PlaceInstalled(module, functions, kernel, finders.machine, of, why_not);
  }
  of.why_not[module] = why_not;
}

bool KernelModules::PlaceGiven(const std::string& module, std::span<const LoadedFunction> functions,
                               const ModuleKernel& kernel, const FileFinder& here, Domain& domain,
                               std::string& why_not) {
  for (const auto& file : domain.given) {
    if (file->name() != module) continue;
    const UnwindTable* const table = TableOf(*file, kernel.layout);
    const absl::Status placed = PlaceFile(file, functions, table, here, domain);
    why_not = WhyNoChains(file->path(), placed, table);
    if (placed.ok()) return true;
  }
  return false;
}

bool KernelModules::PlaceInstalled(const std::string& module,
                                   std::span<const LoadedFunction> functions,
                                   const ModuleKernel& kernel, const FileFinder& machine,
                                   Domain& domain, std::string& why_not) {
  const Listing& listing = ListingOf(machine, kernel.release);
  const auto paths = listing.find(module);
  if (paths == listing.end()) {
    if (!why_not.empty()) return false;
    why_not = kernel.release.empty()
                  ? "its file was not given, and vmlinux does not say of which release it is"
                  : fmt::format("its file was not given, and is not below {}{}/{}",
                                machine.root() == "/" ? "" : machine.root(), kDirectories[0],
                                kernel.release);
    return false;
  }
  for (const std::string& path : paths->second) {
    const auto file = Open(machine, path);
    const UnwindTable* const table = file.ok() ? TableOf(**file, kernel.layout) : nullptr;
    const absl::Status placed =
        file.ok() ? PlaceFile(*file, functions, table, machine, domain) : file.status();
    why_not = WhyNoChains(path, placed, table);
    if (placed.ok()) return true;
  }
  return false;
}

absl::Status KernelModules::PlaceFile(const std::shared_ptr<const ModuleFile>& file,
                                      std::span<const LoadedFunction> functions,
                                      const UnwindTable* table, const FileFinder& finder,
                                      Domain& domain) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<LoadedCode> places, file->PlacesOf(functions));
  std::unique_ptr<ImageFile>& image = images_[file.get()];
  if (image == nullptr) {
    XENOSCOPE_ASSIGN_OR_RETURN(
        image, ImageFile::OpenModule(file->shared_content(), file->path(), finder, cache_));
  }
  std::vector<Placed> placed = domain.placed;
  for (const LoadedCode& code : places) placed.push_back({code, table, image.get()});
  std::ranges::sort(placed, {}, [](const Placed& of) { return of.code.begin; });
  for (size_t i = 1; i < placed.size(); ++i) {
    if (placed[i].code.begin < placed[i - 1].code.end) {
      return InvalidError("kallsyms has another module where it would be");
    }
  }
  domain.placed = std::move(placed);
  domain.used.push_back(file);
  return absl::OkStatus();
}

const KernelModules::Placed* KernelModules::PlacedAt(const Domain& domain, Address address) {
  auto after = std::ranges::upper_bound(domain.placed, address, {},
                                        [](const Placed& item) { return item.code.begin; });
  if (after == domain.placed.begin() || address >= (--after)->code.end) return nullptr;
  return &*after;
}

std::optional<UnwindCode> KernelModules::CodeAt(DomainId domain, Address address) const {
  const auto of = domains_.find(domain);
  const Placed* const placed = of == domains_.end() ? nullptr : PlacedAt(of->second, address);
  if (placed == nullptr || placed->table == nullptr) return std::nullopt;
  UnwindCode code{.table = placed->table,
                  .address = address - placed->code.begin + placed->code.address,
                  .frame_pointers = false};
  code.mapped = code.table->Find(code.address) != UnwindTable::kNoRow;
  return code;
}

std::optional<KernelModules::Location> KernelModules::LocationOf(DomainId domain,
                                                                 Address address) const {
  const auto of = domains_.find(domain);
  const Placed* const placed = of == domains_.end() ? nullptr : PlacedAt(of->second, address);
  if (placed == nullptr) return std::nullopt;
  return Location{placed->image, address - placed->code.begin + placed->code.address};
}

std::vector<std::string> KernelModules::Missing(DomainId domain) const {
  std::vector<std::string> missing;
  const auto of = domains_.find(domain);
  if (of == domains_.end()) return missing;
  for (const auto& [module, why] : of->second.why_not) {
    if (!why.empty()) missing.push_back(fmt::format("{}: {}", module, why));
  }
  return missing;
}

std::vector<KernelModules::Used> KernelModules::UsedFiles() const {
  std::vector<Used> used;
  for (const auto& [domain, of] : domains_) {
    for (const auto& file : of.used) {
      ImageFile& image = *images_.at(file.get());
      // Not looked up again: only what was read is to be kept.
      const bool has_own = image.debug_path().empty() || image.debug_path() == file->path();
      used.push_back({domain, file, has_own ? nullptr : image.DebugFile(), image.elf().BuildId()});
    }
  }
  std::ranges::sort(used, {}, [](const Used& of) { return std::pair(of.domain, of.file->name()); });
  return used;
}

const KernelModules::Listing& KernelModules::ListingOf(const FileFinder& finder,
                                                       const std::string& release) {
  const auto [known, is_new] = listings_.try_emplace({finder.root(), release});
  Listing& listing = known->second;
  if (!is_new || release.empty()) return listing;
  for (const char* const directory : kDirectories) {
    const auto add = [&listing](const std::string& path) {
      if (std::string name = ModuleFile::NameOfPath(path); !name.empty()) {
        listing[std::move(name)].push_back(path);
      }
    };
    const absl::Status listed = finder.ForEachFile(fmt::format("{}/{}", directory, release), add);
    if (listed.ok() && !listing.empty()) break;
  }
  for (auto& [name, paths] : listing) std::ranges::sort(paths);
  return listing;
}

absl::StatusOr<std::shared_ptr<const ModuleFile>> KernelModules::Open(const FileFinder& finder,
                                                                      const std::string& path) {
  const auto known = opened_.find({finder.root(), path});
  if (known != opened_.end()) return known->second;
  XENOSCOPE_ASSIGN_OR_RETURN(FileContent content, finder.Open(path));
  XENOSCOPE_ASSIGN_OR_RETURN(std::shared_ptr<const ModuleFile> file,
                             ModuleFile::Open(std::move(content), path));
  opened_[{finder.root(), path}] = file;
  return file;
}

const UnwindTable* KernelModules::TableOf(const ModuleFile& file, std::optional<OrcLayout> layout) {
  if (!layout) return nullptr;
  const auto [known, is_new] = tables_.try_emplace({&file, *layout});
  if (is_new) {
    const auto begins = file.OrcBegins();
    const auto entries = begins ? ReadOrc(*begins, file.OrcEntries(), *layout)
                                : std::optional<std::vector<OrcEntry>>();
    auto table = std::make_unique<Table>();
    if (entries) table->bytes = MakeUnwindTable(*entries);
    const auto opened = UnwindTable::Open(AsBytes(table->bytes));
    if (opened.ok()) {
      table->table = *opened;
      known->second = std::move(table);
    }
  }
  return known->second == nullptr ? nullptr : &known->second->table;
}

}  // namespace xenoscope::symbolizer
