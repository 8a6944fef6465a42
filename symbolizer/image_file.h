// An ELF file whose code ran, with what it or its debug file says: functions, lines, and the code
// itself.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/mode.h"
#include "symbolizer/dwarf/debug_info.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/elf_symbols.h"
#include "symbolizer/file_content.h"
#include "symbolizer/file_finder.h"
#include "symbolizer/index_cache.h"
#include "symbolizer/unwind/file_unwind_table.h"

namespace xenoscope::symbolizer {

class ImageFile;

// The place of code in its file.
struct CodeLocation {
  // null: only a list of symbols names it, and addresses are those in memory
  ImageFile* file = nullptr;
  Address address = 0;         // address as linked
  Address function_begin = 0;  // start of the function that holds the address, as linked
  Address function_end = 0;
};

// The file.
class ImageFile {
 public:
  // Opens a file that was at `path`, beside which its debug file may be; `cache` is for its debug
  // information, or null; `id` is its content id, if it may have no build-id. Error: not ELF,
  // damaged, or an object file.
  static absl::StatusOr<std::unique_ptr<ImageFile>> Open(
      FileContent content, std::string path, const FileFinder& finder,
      std::shared_ptr<const IndexCache> cache = nullptr, std::string id = "");
  // Opens a kernel's module that was at `path`. Addresses are those of object_sections.h. Error:
  // not ELF, damaged, or linked.
  static absl::StatusOr<std::unique_ptr<ImageFile>> OpenModule(
      std::shared_ptr<const FileContent> content, std::string path, const FileFinder& finder,
      std::shared_ptr<const IndexCache> cache = nullptr);
  ImageFile(const ImageFile&) = delete;
  ImageFile& operator=(const ImageFile&) = delete;

  [[nodiscard]] const ElfFile& elf() const { return elf_; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] Bytes content() const { return content_->bytes(); }
  // Returns its debug file, which is looked up once. Null: there is none.
  const FileContent* DebugFile();

  // Reads the functions of .symtab, else of its debug file or the small one inside it
  // (.gnu_debugdata), else of .dynsym; and the entries of .plt. The names live as long as the file.
  // Error: no functions, with the reason.
  absl::StatusOr<ElfSymbols> ReadSymbols(std::string_view image);
  // Returns where ReadSymbols found them, for a user: a path, and the part of that file.
  [[nodiscard]] const std::string& symbols_from() const { return symbols_from_; }
  // Returns why there is no debug file, once DebugFile was called; empty: there is one.
  [[nodiscard]] const std::string& why_no_debug_file() const { return why_no_debug_file_; }
  // Returns lines and inlined frames, which are read at the first call; null where there is no
  // DWARF.
  DebugInfo* debug_info();
  // Returns the file that debug_info() was read from; empty: none.
  [[nodiscard]] const std::string& debug_path() const { return debug_path_; }

  // Returns the table for unwinding its code, which is read at the first call; null where there is
  // no call frame information.
  const UnwindTable* unwind_table();

  // Returns the address, as linked, of the byte at `offset`; nothing where it is not loaded.
  [[nodiscard]] std::optional<Address> AddressOf(uint64_t offset) const;
  // Returns the offset of the byte at this address, as linked; nothing where the file has none.
  [[nodiscard]] std::optional<uint64_t> OffsetOf(Address address) const;
  // Returns the code at [begin, begin + size), as linked, as far as the file has it.
  [[nodiscard]] Bytes CodeAt(Address begin, uint64_t size) const;

 private:
  // A loaded part of the file (PT_LOAD, or a module's section with code): [offset, offset + size)
  // of it lies at `address`.
  struct Part {
    uint64_t offset = 0;
    uint64_t size = 0;
    Address address = 0;
  };

  ImageFile() = default;
  absl::StatusOr<ElfSymbols> ReadTables(std::string_view image);

  std::shared_ptr<const FileContent> content_;
  ElfFile elf_;
  std::string path_;
  std::string id_;
  FileFinder finder_;
  std::shared_ptr<const IndexCache> cache_;
  std::vector<Part> parts_;
  bool looked_for_debug_file_ = false;
  std::shared_ptr<const FileContent> debug_file_;
  std::optional<FileContent> small_debug_file_;
  std::string debug_file_path_;
  std::string debug_path_;
  std::string symbols_from_;
  std::string why_no_debug_file_;
  bool opened_debug_info_ = false;
  std::unique_ptr<DebugInfo> debug_info_;
  bool opened_unwind_table_ = false;
  std::unique_ptr<FileUnwindTable> unwind_table_;
};

}  // namespace xenoscope::symbolizer
