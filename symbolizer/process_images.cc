#include "symbolizer/process_images.h"

#include <fmt/format.h>
#include <gelf.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "symbolizer/demangle.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/elf_symbols.h"
#include "symbolizer/file_content.h"

namespace xenoscope::symbolizer {
namespace {

std::string NameOf(const std::string& path) {
  // "[vdso]", "//anon": no files, and names by themselves.
  if (path.empty() || path.front() != '/' || path.starts_with("//")) return path;
  return std::filesystem::path(path).filename().string();
}

}  // namespace

uint32_t ProcessImages::AddFile(const std::string& path, const std::string& build_id) {
  const auto [found, is_new] = numbers_.try_emplace(fmt::format("{}{}{}", build_id, '\0', path),
                                                    static_cast<uint32_t>(files_.size()));
  if (is_new) {
    File& file = files_.emplace_back();
    file.path = path;
    file.build_id = build_id;
  }
  return found->second;
}

void ProcessImages::AddStandIn(const std::string& build_id, const std::string& path) {
  if (!build_id.empty()) stand_ins_.try_emplace(build_id, path);
}

void ProcessImages::SetMaps(ProcessSpace space, std::vector<ProcessMap> maps) {
  maps_[space.value] = std::move(maps);
}

Function ProcessImages::Find(ProcessSpace space, Address address) {
  const auto known = maps_.find(space.value);
  const auto holds = [address](const ProcessMap& map) {
    return map.begin <= address && address < map.end;
  };
  const auto nowhere = [] {
    return Function{"[unknown]", "[no map]", "in no memory that its process was known to map"};
  };
  if (known == maps_.end()) return nowhere();
  const auto map = std::find_if(known->second.rbegin(), known->second.rend(), holds);
  if (map == known->second.rend() || map->file >= files_.size()) return nowhere();
  File& file = files_[map->file];
  if (!file.read) Read(file);
  const std::string name = NameOf(file.path);
  if (!file.symbols) return {name, "[no symbols]", file.why_not};
  const uint64_t offset = address - map->begin + map->offset;
  const auto part = std::ranges::find_if(file.parts, [offset](const Part& candidate) {
    return candidate.offset <= offset && offset - candidate.offset < candidate.size;
  });
  if (part != file.parts.end()) {
    const uint32_t symbol = file.symbols->Find(offset - part->offset + part->address);
    if (symbol != SymbolIndex::kNoSymbol) {
      return {name, Demangled(file.symbols->Name(symbol)), ""};
    }
  }
  return {name, "[gap]", fmt::format("between the functions of {}", name)};
}

void ProcessImages::Read(File& file) const {
  file.read = true;
  if (file.path.empty() || file.path.front() != '/' || file.path.starts_with("//")) {
    file.why_not = fmt::format("{} is memory that no file has", file.path);
    return;
  }
  if (file.build_id.empty()) {
    file.why_not = fmt::format("{}: it was recorded without a build-id: which one ran is not known",
                               file.path);
    return;
  }
  absl::Status status = ReadFrom(file.path, file);
  const auto stand_in = stand_ins_.find(file.build_id);
  if (!status.ok() && stand_in != stand_ins_.end()) status = ReadFrom(stand_in->second, file);
  if (!status.ok()) file.why_not = fmt::format("{}: {}", file.path, Message(status));
}

absl::Status ProcessImages::ReadFrom(const std::string& path, File& file) {
  XENOSCOPE_ASSIGN_OR_RETURN(const FileContent content, FileContent::Open(path));
  XENOSCOPE_ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::Open(content.bytes()));
  if (elf.BuildId() != file.build_id) {
    return NotFoundError("the file that is there now is of another build than the one that ran");
  }
  size_t count = 0;
  if (elf_getphdrnum(elf.get(), &count) != 0) return InvalidError("it is a damaged ELF file");
  std::vector<Part> parts;
  for (size_t i = 0; i < count; ++i) {
    GElf_Phdr header;
    if (gelf_getphdr(elf.get(), static_cast<int>(i), &header) == nullptr) continue;
    if (header.p_type != PT_LOAD) continue;
    parts.push_back({header.p_offset, header.p_filesz, header.p_vaddr});
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const ElfSymbols symbols, ReadElf(elf, NameOf(file.path)));
  XENOSCOPE_ASSIGN_OR_RETURN(SymbolIndex index, SymbolIndex::Build(symbols.table));
  file.parts = std::move(parts);
  file.symbols = std::make_unique<SymbolIndex>(std::move(index));
  return absl::OkStatus();
}

}  // namespace xenoscope::symbolizer
