// The code of the modules of domains' kernels, for unwinding: from files that were given for a
// domain, and from /lib/modules/RELEASE of its machine. A file is opened when code of its module is
// first met. It is used only if all functions of the module in kallsyms are where the file has
// them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "base/mode.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/elf/module_file.h"
#include "symbolizer/file_finder.h"
#include "symbolizer/unwind/unwind_table.h"
#include "symbolizer/unwind/unwinder.h"

namespace xenoscope::symbolizer {

// What is to be known of the kernel that has loaded a module.
struct ModuleKernel {
  std::string release;  // as uname -r prints it; empty: not known
  OrcLayout layout = OrcLayout::kEnd;
};
// Reads it from a kernel's file, which has ORC. O(size of its constants).
ModuleKernel ModuleKernelOf(const ElfFile& vmlinux);

class KernelModules {
 public:
  // Adds a module's file for the domain. Of several files of a module, the first that fits is used.
  void AddFile(DomainId domain, std::shared_ptr<const ModuleFile> file);

  // Returns whether Place was called for this module.
  [[nodiscard]] bool IsKnown(DomainId domain, std::string_view module) const;
  // Finds the module's file, whose functions are at these addresses in memory. `finder` has the
  // files of the domain's machine.
  void Place(DomainId domain, const std::string& module, std::span<const LoadedFunction> functions,
             const ModuleKernel& kernel, const FileFinder& finder);
  // Returns what unwinding needs to know of the code at the address; nothing: it is in no module
  // that was placed. O(log n).
  [[nodiscard]] std::optional<UnwindCode> CodeAt(DomainId domain, Address address) const;

  // Returns the modules for which Place was called and found nothing, with the reason: "brd: ...".
  [[nodiscard]] std::vector<std::string> Missing(DomainId domain) const;

  struct Used {
    DomainId domain;
    std::shared_ptr<const ModuleFile> file;
  };
  // Returns the files of the modules that were placed.
  [[nodiscard]] std::vector<Used> UsedFiles() const;

 private:
  struct Table {
    std::string bytes;
    UnwindTable table;
  };
  struct Placed {
    LoadedCode code;
    const UnwindTable* table = nullptr;
  };
  struct Domain {
    std::vector<std::shared_ptr<const ModuleFile>> given;
    std::map<std::string, std::string, std::less<>> why_not;  // by module; empty: it was placed
    std::vector<Placed> placed;                               // by address
    std::vector<std::shared_ptr<const ModuleFile>> used;
  };
  // The paths of the files in a directory of modules, by the name of the module.
  using Listing = absl::flat_hash_map<std::string, std::vector<std::string>>;

  absl::Status PlaceFile(const std::shared_ptr<const ModuleFile>& file,
                         std::span<const LoadedFunction> functions, OrcLayout layout,
                         Domain& domain);
  const Listing& ListingOf(const FileFinder& finder, const std::string& release);
  absl::StatusOr<std::shared_ptr<const ModuleFile>> Open(const FileFinder& finder,
                                                         const std::string& path);
  // Returns the table; null: there is none.
  const UnwindTable* TableOf(const ModuleFile& file, OrcLayout layout);

  absl::flat_hash_map<DomainId, Domain> domains_;
  std::map<std::pair<std::string, std::string>, Listing> listings_;  // by root and release
  // By root and path.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const ModuleFile>> opened_;
  std::map<std::pair<const ModuleFile*, OrcLayout>, std::unique_ptr<const Table>> tables_;
};

}  // namespace xenoscope::symbolizer
