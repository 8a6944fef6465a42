// The table for unwinding of one ELF file: from the cache, or made from the file and stored there.
#pragma once

#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "base/mapped_file.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/file_content.h"
#include "symbolizer/index_cache.h"
#include "symbolizer/unwind/unwind_table.h"

namespace xenoscope::symbolizer {

class FileUnwindTable {
 public:
  // Reads the ORC of `file`, whose content is `content`, if it is a kernel that has it; else
  // .eh_frame and .debug_frame; if it has neither, the .debug_frame of its debug file, which
  // `debug_file` looks up (null: there is none). `cache` may be null. Null: there is no such table.
  static std::unique_ptr<FileUnwindTable> Read(const ElfFile& file, const FileContent& content,
                                               absl::FunctionRef<const FileContent*()> debug_file,
                                               const IndexCache* cache);

  [[nodiscard]] const UnwindTable& table() const { return table_; }

 private:
  FileUnwindTable() = default;

  MappedFile cached_;
  std::string made_;
  UnwindTable table_;  // in cached_ or made_
};

}  // namespace xenoscope::symbolizer
