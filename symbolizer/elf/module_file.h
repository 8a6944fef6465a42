// The file of a module of Linux for x86-64 (NAME.ko): an object file, whose sections the kernel
// puts wherever it finds room. An address in it is that of object_sections.h, which does not depend
// on where that is. Nothing in the file is trusted.
#pragma once

#include <elf.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/mode.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/file_content.h"

namespace xenoscope::symbolizer {

// A function of a loaded module, as kallsyms has it.
struct LoadedFunction {
  std::string_view name;
  Address address = 0;
};

// Code of a loaded module: [begin, end) in memory is what `address` begins in the file.
struct LoadedCode {
  Address begin = 0;
  Address end = 0;
  Address address = 0;

  bool operator==(const LoadedCode&) const = default;
};

class ModuleFile {
 public:
  // Opens the file that was at `path`. O(symbols). Error: it is no module for x86-64, is damaged,
  // or has no functions.
  static absl::StatusOr<std::unique_ptr<ModuleFile>> Open(FileContent content, std::string path);
  // Returns the name that a loaded module has whose file has this path, which may be compressed:
  // without directory and ending, and '-' is '_'. Empty: it is not named as such files are.
  static std::string NameOfPath(std::string_view path);

  [[nodiscard]] const std::string& path() const { return path_; }
  // Returns the name that it has when it is loaded.
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Bytes content() const { return content_->bytes(); }
  [[nodiscard]] const std::shared_ptr<const FileContent>& shared_content() const {
    return content_;
  }

  // Returns where its sections with code are, those that have one of `functions`, which are all
  // functions of one loaded module. Two of them have to be in the file, each once, or the only one
  // that the file has beside those of its start; and all of a section have to say the same of its
  // place. O(n log n). Error: they do not, or name what is not in the file: it is of another build.
  [[nodiscard]] absl::StatusOr<std::vector<LoadedCode>> PlacesOf(
      std::span<const LoadedFunction> functions) const;

  // Returns the addresses at which its entries of ORC begin, one for each of OrcEntries(). Nothing:
  // there is no ORC, or it is damaged. O(n).
  [[nodiscard]] std::optional<std::vector<Address>> OrcBegins() const;
  [[nodiscard]] Bytes OrcEntries() const { return elf_.Section(".orc_unwind"); }
  // Returns the sections that are loaded and that OrcBegins or Open reads.
  [[nodiscard]] std::vector<Bytes> LoadedParts() const;

 private:
  struct Section {
    uint64_t size = 0;
    uint64_t alignment = 1;
    Address address = 0;    // 0: it has no code
    bool is_start = false;  // its code is dropped once the module was started
  };
  // A symbol that is defined in a section; `section` 0: several have its name.
  struct Definition {
    uint32_t section = 0;
    uint64_t offset = 0;
    bool is_function = false;
  };

  ModuleFile() = default;
  absl::Status ReadSections();
  void ReadDefinitions();
  [[nodiscard]] std::string NameInside() const;
  // Returns the symbol with this number, if there are as many.
  [[nodiscard]] std::optional<Elf64_Sym> SymbolAt(uint64_t number) const;
  // Returns the address of what is `offset` bytes into the section; its end is allowed. Nothing: it
  // is not in the section.
  [[nodiscard]] std::optional<Address> AddressIn(uint64_t section, uint64_t offset) const;

  // Returns whether one function is all that the loaded module can have in kallsyms.
  [[nodiscard]] bool HasOneFunction() const;

  std::shared_ptr<const FileContent> content_;
  ElfFile elf_;
  std::string path_;
  std::string name_;
  std::vector<Section> sections_;  // by number
  Bytes symbols_;                  // the symbol table
  size_t names_ = 0;               // number of the section with its names
  absl::flat_hash_map<std::string_view, Definition> definitions_;
};

}  // namespace xenoscope::symbolizer
