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

// Returns the release in the text with which a kernel of Linux begins to print (linux_banner):
// "Linux version RELEASE (...". Empty: it is not there, or no name of a directory.
std::string ReleaseIn(std::string_view constants) {
  constexpr std::string_view kBanner = "Linux version ";
  constexpr size_t kMaxRelease = 64;
  const size_t at = constants.find(kBanner);
  if (at == std::string_view::npos) return {};
  std::string_view release = constants.substr(at + kBanner.size(), kMaxRelease + 1);
  const size_t end = release.find(' ');
  if (end == std::string_view::npos || release.substr(0, end).find('/') != std::string_view::npos) {
    return {};
  }
  return std::string(release.substr(0, end));
}

}  // namespace

ModuleKernel ModuleKernelOf(const ElfFile& vmlinux) {
  return {.release = ReleaseIn(AsText(vmlinux.Section(".rodata"))),
          .layout = OrcLayoutOf(vmlinux.Section(".orc_unwind"))};
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
                          const FileFinder& finder) {
  Domain& of = domains_[domain];
  std::string why_not;
  for (const auto& file : of.given) {
    if (file->name() != module) continue;
    const absl::Status placed = PlaceFile(file, functions, kernel.layout, of);
    why_not = placed.ok() ? "" : fmt::format("{}: {}", file->path(), Message(placed));
    if (placed.ok()) {
      of.why_not[module] = "";
      return;
    }
  }
  const Listing& listing = ListingOf(finder, kernel.release);
  if (const auto paths = listing.find(module); paths != listing.end()) {
    for (const std::string& path : paths->second) {
      const auto file = Open(finder, path);
      const absl::Status placed =
          file.ok() ? PlaceFile(*file, functions, kernel.layout, of) : file.status();
      why_not = placed.ok() ? "" : fmt::format("{}: {}", path, Message(placed));
      if (placed.ok()) break;
    }
  } else if (why_not.empty()) {
    why_not = kernel.release.empty()
                  ? "its file was not given, and vmlinux does not say of which release it is"
                  : fmt::format("its file was not given, and is not below {}{}/{}",
                                finder.root() == "/" ? "" : finder.root(), kDirectories[0],
                                kernel.release);
  }
  of.why_not[module] = why_not;
}

absl::Status KernelModules::PlaceFile(const std::shared_ptr<const ModuleFile>& file,
                                      std::span<const LoadedFunction> functions, OrcLayout layout,
                                      Domain& domain) {
  XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<LoadedCode> places, file->PlacesOf(functions));
  const UnwindTable* const table = TableOf(*file, layout);
  if (table == nullptr) return InvalidError("it has no ORC, or a damaged one");
  std::vector<Placed> placed = domain.placed;
  for (const LoadedCode& code : places) placed.push_back({code, table});
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

std::optional<UnwindCode> KernelModules::CodeAt(DomainId domain, Address address) const {
  const auto of = domains_.find(domain);
  if (of == domains_.end()) return std::nullopt;
  const std::vector<Placed>& placed = of->second.placed;
  auto after = std::ranges::upper_bound(placed, address, {},
                                        [](const Placed& item) { return item.code.begin; });
  if (after == placed.begin() || address >= (--after)->code.end) return std::nullopt;
  UnwindCode code{.table = after->table,
                  .address = address - after->code.begin + after->code.address,
                  .frame_pointers = false};
  code.mapped = code.table->Find(code.address) != UnwindTable::kNoRow;
  return code;
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
    for (const auto& file : of.used) used.push_back({domain, file});
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

const UnwindTable* KernelModules::TableOf(const ModuleFile& file, OrcLayout layout) {
  const auto [known, is_new] = tables_.try_emplace({&file, layout});
  if (is_new) {
    const auto begins = file.OrcBegins();
    const auto entries = begins ? ReadOrc(*begins, file.OrcEntries(), layout)
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
