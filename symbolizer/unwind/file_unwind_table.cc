#include "symbolizer/unwind/file_unwind_table.h"

#include <utility>
#include <vector>

#include "symbolizer/dwarf/dwarf_sections.h"

namespace xenoscope::symbolizer {
namespace {

// The sections, and what keeps those that were decompressed.
struct Sections {
  std::vector<CfiSection> sections;
  std::vector<DwarfSections> decompressed;

  void AddDebugFrame(const ElfFile& file, Bytes content) {
    auto read = DwarfSections::Read(file, content, DwarfSections::Kind::kFrames);
    if (!read.ok()) return;
    decompressed.push_back(*std::move(read));
    sections.push_back({decompressed.back().of(DwarfSections::kFrame), 0, /*is_eh_frame=*/false});
  }
};

std::string MakeTable(const ElfFile& file, const FileContent& content,
                      absl::FunctionRef<const FileContent*()> debug_file) {
  const OrcSections orc{file.Section(".orc_unwind_ip"), file.AddressOfSection(".orc_unwind_ip"),
                        file.Section(".orc_unwind")};
  if (std::string table = MakeUnwindTable(orc); !table.empty()) return table;
  Sections found;
  if (const Bytes eh_frame = file.Section(".eh_frame"); !eh_frame.empty()) {
    found.sections.push_back({eh_frame, file.AddressOfSection(".eh_frame")});
  }
  found.AddDebugFrame(file, content.bytes());
  if (found.sections.empty()) {
    const FileContent* const debug = debug_file();
    if (debug == nullptr) return {};
    if (const auto elf = ElfFile::Open(debug->bytes()); elf.ok()) {
      found.AddDebugFrame(*elf, debug->bytes());
    }
  }
  return found.sections.empty() ? std::string() : MakeUnwindTable(found.sections);
}

}  // namespace

std::unique_ptr<FileUnwindTable> FileUnwindTable::Read(
    const ElfFile& file, const FileContent& content,
    absl::FunctionRef<const FileContent*()> debug_file, const IndexCache* cache) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<FileUnwindTable> read(new FileUnwindTable());
  const std::string build_id = file.BuildId();
  const bool cacheable = cache != nullptr && content.identity() != FileIdentity();
  if (cacheable) {
    if (auto known = cache->Find(build_id, content.identity(), IndexCache::Kind::kUnwind)) {
      read->cached_ = *std::move(known);
      if (const auto table = UnwindTable::Open(read->cached_.bytes()); table.ok()) {
        read->table_ = *table;
        return read;
      }
    }
  }
  read->made_ = MakeTable(file, content, debug_file);
  if (read->made_.empty()) return nullptr;
  const auto table = UnwindTable::Open(AsBytes(read->made_));
  if (!table.ok()) return nullptr;
  read->table_ = *table;
  if (cacheable) {
    cache->Store(build_id, content.identity(), read->made_, IndexCache::Kind::kUnwind);
  }
  return read;
}

}  // namespace xenoscope::symbolizer
