#include "symbolizer/process_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/code_place.h"
#include "base/error.h"
#include "symbolizer/demangle.h"
#include "symbolizer/elf/build_id.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/elf_symbols.h"
#include "symbolizer/file_content.h"

namespace xenoscope::symbolizer {
namespace {

constexpr const char* kVdso = "[vdso]";
// Start of the 64-bit vDSO's range; a 32-bit process has another vDSO, below it.
constexpr Address kFirst64BitAddress = Address{1} << 32;

// Returns whether it is the path of a file: "[vdso]" and "//anon" are names.
bool IsPath(std::string_view path) { return path.starts_with('/') && !path.starts_with("//"); }

std::string NameOfFile(const std::string& path) {
  if (!IsPath(path)) return path;
  return std::filesystem::path(path).filename().string();
}

// Returns whether the file is the build with this build-id or content id. `is_image`: it has its
// name for that id; an archive leaves out parts of a file, so that its content has another id.
bool IsBuild(const ImageFile& file, const std::string& id, bool is_image) {
  if (file.elf().BuildId() == id) return true;
  return IsContentId(id) && (is_image || ContentIdOf(file.content()) == id);
}

}  // namespace

uint32_t ProcessImages::AddFile(DomainId domain, const std::string& path,
                                const std::string& build_id) {
  const auto [found, is_new] =
      numbers_.try_emplace(fmt::format("{}{}{}{}{}", domain.value, '\0', build_id, '\0', path),
                           static_cast<uint32_t>(files_.size()));
  if (is_new) {
    File& file = files_.emplace_back();
    file.domain = domain;
    file.path = path;
    file.build_id = build_id;
  }
  return found->second;
}

void ProcessImages::AddSubstitute(const std::string& build_id, const std::string& path) {
  substitutes_.try_emplace(build_id, path);
}

std::string ProcessImages::NameOf(const std::string& build_id) const {
  const auto substitute = substitutes_.find(build_id);
  return substitute == substitutes_.end() ? "" : NameOfFile(substitute->second);
}

void ProcessImages::SetRoot(DomainId domain, const std::string& root) {
  roots_.insert_or_assign(domain, root);
}

absl::Status ProcessImages::SetVdso(DomainId domain, FileContent content) {
  File file;
  file.domain = domain;
  file.path = kVdso;
  file.read = true;
  XENOSCOPE_RETURN_IF_ERROR(ReadFrom(FileFinder("/"), std::move(content), kVdso, file));
  vdsos_[domain] = static_cast<uint32_t>(files_.size());
  files_.push_back(std::move(file));
  return absl::OkStatus();
}

void ProcessImages::SetMaps(AddressSpaceId space, DomainId domain, uint32_t pid, ProcessMaps maps,
                            std::shared_ptr<const std::vector<uint32_t>> files) {
  processes_[space.value] = {domain, pid, std::move(maps), std::move(files)};
}

bool ProcessImages::IsPartial(AddressSpaceId space) const {
  const auto known = processes_.find(space.value);
  return known != processes_.end() && known->second.pid == kNoProcess;
}

bool ProcessImages::Knows(AddressSpaceId space, Address address) const {
  const auto known = processes_.find(space.value);
  return known != processes_.end() &&
         (known->second.pid != kNoProcess || known->second.maps.Find(address) != nullptr);
}

std::optional<DomainId> ProcessImages::DomainOf(AddressSpaceId space) const {
  const auto known = processes_.find(space.value);
  if (known == processes_.end()) return std::nullopt;
  return known->second.domain;
}

size_t ProcessImages::Process::FileOf(const ProcessMap& map) const {
  if (files == nullptr) return map.file;
  return map.file < files->size() ? (*files)[map.file] : SIZE_MAX;
}

ProcessImages::Position ProcessImages::PositionOf(AddressSpaceId space, Address address) {
  const auto known = processes_.find(space.value);
  if (known == processes_.end()) return {};
  const ProcessMap* const map = known->second.maps.Find(address);
  if (map == nullptr) return {};
  size_t number = known->second.FileOf(*map);
  if (number >= files_.size()) return {};
  if (files_[number].path == kVdso && map->begin >= kFirst64BitAddress) {
    const auto vdso = vdsos_.find(known->second.domain);
    if (vdso != vdsos_.end()) number = vdso->second;
  }
  File& file = files_[number];
  if (!file.read) Read(file);
  const uint64_t offset = address - map->begin + map->offset;
  if (!file.image) return {&file, std::nullopt, offset};
  return {&file, file.image->AddressOf(offset), offset};
}

Function ProcessImages::Find(AddressSpaceId space, Address address) {
  const Position position = PositionOf(space, address);
  if (position.file == nullptr || !position.file->symbols) {
    if (auto made = FindJitFunction(space, address)) return *std::move(made);
  }
  if (position.file == nullptr) {
    return {"[unknown]", "[no map]", "outside the recorded mappings of its process"};
  }
  const File& file = *position.file;
  const std::string name =
      file.path.empty() ? fmt::format("[build-id {:.12}]", file.build_id) : NameOfFile(file.path);
  if (!file.symbols) return {name, NameOfPlace(position, "[no symbols]"), file.why_not};
  if (position.address) {
    const uint32_t symbol = file.symbols->Find(*position.address);
    if (symbol != SymbolIndex::kNoSymbol) {
      return {name, Demangled(file.symbols->Name(symbol)), ""};
    }
  }
  return {name, NameOfPlace(position, "[gap]"), fmt::format("between the functions of {}", name)};
}

std::string ProcessImages::NameOfPlace(const Position& position, std::string_view name) {
  constexpr size_t kMaxPlaces = 16'384;
  if (!names_places_ || position.file->build_id.empty()) return std::string(name);
  std::string place = ToString(CodePlace{position.file->build_id, position.offset});
  if (places_.size() < kMaxPlaces) places_.insert(place);
  return places_.contains(place) ? place : std::string(name);
}

std::optional<Function> ProcessImages::FindJitFunction(AddressSpaceId space,
                                                       Address address) const {
  const auto process = processes_.find(space.value);
  if (process == processes_.end()) return std::nullopt;
  const auto maps = perf_maps_.find(process->second.domain);
  const SymbolIndex* made =
      maps == perf_maps_.end() ? nullptr : maps->second.FunctionsOf(process->second.pid);
  if (made == nullptr) return std::nullopt;
  const uint32_t symbol = made->Find(address);
  if (symbol == SymbolIndex::kNoSymbol) return std::nullopt;
  return Function{std::string(kJitImage), std::string(made->Name(symbol)), ""};
}

std::optional<CodeLocation> ProcessImages::LocationOf(AddressSpaceId space, Address address) {
  const Position position = PositionOf(space, address);
  if (!position.address || !position.file->symbols) return std::nullopt;
  const SymbolIndex& symbols = *position.file->symbols;
  const uint32_t symbol = symbols.Find(*position.address);
  if (symbol == SymbolIndex::kNoSymbol) return std::nullopt;
  return CodeLocation{position.file->image.get(), *position.address, symbols.Start(symbol),
                      symbols.End(symbol)};
}

UnwindCode ProcessImages::UnwindCodeAt(AddressSpaceId space, Address address) {
  const Position position = PositionOf(space, address);
  if (position.file == nullptr) return {};
  if (!position.address) {
    const File& file = *position.file;
    // JIT compilers map their code from memory without a file, or from a memfd.
    const bool is_file = IsPath(file.path) && !file.path.starts_with("/memfd:");
    return {.mapped = true, .file_is_missing = is_file && !file.image};
  }
  return {true, position.file->image->unwind_table(), *position.address};
}

void ProcessImages::Read(File& file) const {
  file.read = true;
  if (file.path.empty() && !file.build_id.empty()) return ReadByBuildId(file);
  if (!IsPath(file.path)) {
    file.why_not = fmt::format(
        "{} is memory without a file{}", file.path,
        file.path == kVdso ? ", and the recording does not contain it"
                           : "; a JIT compiler can write its functions to /tmp/perf-PID.map: java "
                             "-XX:+DumpPerfMapAtExit, node --perf-basic-prof");
    return;
  }
  if (file.build_id.empty()) {
    file.why_not = fmt::format(
        "{}: it has no build-id and could not be read when recording ended, so the present file "
        "cannot be verified",
        file.path);
    return;
  }
  const FileFinder finder = FinderOf(file.domain);
  const auto read = [this, &file](const FileFinder& from, absl::StatusOr<FileContent> content,
                                  const std::string& path) {
    return content.ok() ? ReadFrom(from, *std::move(content), path, file) : content.status();
  };
  absl::Status status = read(finder, finder.Open(file.path), file.path);
  const auto substitute = substitutes_.find(file.build_id);
  if (!status.ok() && substitute != substitutes_.end()) {
    const FileFinder here = FinderHere();
    status = read(here, here.Open(substitute->second), substitute->second);
  }
  if (!status.ok()) {
    // Errors are about the file at its own path.
    auto image = finder.OpenImage(file.build_id);
    const absl::Status archived =
        image.ok() ? ReadFrom(finder, *std::move(image), file.path, file, /*is_image=*/true)
                   : image.status();
    if (archived.ok()) status = archived;
  }
  if (!status.ok() && server_ != nullptr && !IsContentId(file.build_id)) {
    const absl::Status fetched = read(finder, finder.FetchProgram(file.build_id), file.path);
    status = fetched.ok() ? fetched : InContext(status, Message(fetched));
  }
  if (!status.ok()) {
    file.why_not =
        fmt::format("{}: {}; give the directory with the recorded machine's files with --symfs DIR",
                    file.path, Message(status));
  }
}

FileFinder ProcessImages::FinderOf(DomainId domain) const {
  auto root = roots_.find(domain);
  if (root == roots_.end()) root = roots_.find(kEveryDomain);
  return FileFinder(root == roots_.end() ? "/" : root->second, images_, server_);
}

void ProcessImages::ReadByBuildId(File& file) const {
  const auto substitute = substitutes_.find(file.build_id);
  absl::Status status = NotFoundError("no file with this build-id was given");
  if (substitute != substitutes_.end()) {
    const FileFinder here = FinderHere();
    auto content = here.Open(substitute->second);
    status = content.ok() ? ReadFrom(here, *std::move(content), substitute->second, file)
                          : content.status();
    if (file.image) file.path = substitute->second;
  }
  const FileFinder finder = FinderOf(file.domain);
  if (!file.image) {
    auto image = finder.OpenImage(file.build_id);
    if (image.ok()) status = ReadFrom(finder, *std::move(image), "", file, /*is_image=*/true);
  }
  if (!file.image && server_ != nullptr) {
    auto fetched = finder.FetchProgram(file.build_id);
    if (fetched.ok()) status = ReadFrom(finder, *std::move(fetched), "", file);
  }
  if (!status.ok()) {
    file.why_not =
        fmt::format("build-id {}: {} (--guest DOMAIN:exe=FILE)", file.build_id, Message(status));
  }
}

std::vector<UsedFile> ProcessImages::UsedFiles() const {
  std::vector<UsedFile> used;
  for (const File& file : files_) {
    if (!file.image || file.build_id.empty()) continue;  // the vDSO is in the recording
    used.push_back({file.build_id, file.image->content()});
    if (const FileContent* debug = file.image->DebugFile()) {
      used.push_back({file.build_id + ".debug", debug->bytes()});
    }
    const DebugInfo* debug_info = file.image->debug_info();
    if (debug_info == nullptr) continue;
    for (const CompanionFile& companion : debug_info->Companions()) {
      used.push_back({companion.name, companion.content});
    }
  }
  return used;
}

absl::Status ProcessImages::ReadFrom(const FileFinder& finder, FileContent content,
                                     const std::string& path, File& file, bool is_image) const {
  XENOSCOPE_ASSIGN_OR_RETURN(
      auto image, ImageFile::Open(std::move(content), path, finder, cache_, file.build_id));
  if (file.path != kVdso && !IsBuild(*image, file.build_id, is_image)) {
    return NotFoundError("the present file is not the build that was recorded");
  }
  // A stripped file without functions still has code, and tables for unwinding it.
  file.image = std::move(image);
  XENOSCOPE_ASSIGN_OR_RETURN(const ElfSymbols symbols,
                             file.image->ReadSymbols(NameOfFile(file.path)));
  XENOSCOPE_ASSIGN_OR_RETURN(SymbolIndex index, SymbolIndex::Build(symbols.table));
  file.symbols = std::make_unique<SymbolIndex>(std::move(index));
  return absl::OkStatus();
}

}  // namespace xenoscope::symbolizer
