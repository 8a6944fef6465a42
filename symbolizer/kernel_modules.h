// The code of the modules of domains' kernels, for unwinding, and for lines and inlined frames:
// from files that were given for a domain, and from /lib/modules/RELEASE of its machine. A file is
// opened when code of its module is first met. It is used only if all functions of the module in
// kallsyms are where the file has them.
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
#include "symbolizer/image_file.h"
#include "symbolizer/index_cache.h"
#include "symbolizer/unwind/unwind_table.h"
#include "symbolizer/unwind/unwinder.h"

namespace xenoscope::symbolizer {

// Returns whether a kernel can have this release: the name of one directory.
bool IsKernelRelease(std::string_view release);

// What is to be known of the kernel that has loaded a module.
struct ModuleKernel {
  std::string release;              // as uname -r prints it; empty: not known
  std::optional<OrcLayout> layout;  // nothing: not known, or the kernel has no ORC
};
// Reads it from a kernel's file. O(size of its constants).
ModuleKernel ModuleKernelOf(const ElfFile& vmlinux);

class KernelModules {
 public:
  // Sets the cache for the debug information of modules; null: none.
  void SetCache(std::shared_ptr<const IndexCache> cache) { cache_ = std::move(cache); }
  // Adds a module's file for the domain. Of several files of a module, the first that fits is used.
  void AddFile(DomainId domain, std::shared_ptr<const ModuleFile> file);

  // Returns whether Place was called for this module.
  [[nodiscard]] bool IsKnown(DomainId domain, std::string_view module) const;
  // Where files are looked up.
  struct Finders {
    FileFinder machine;  // those of the domain's machine
    FileFinder here;     // debug files of files that were given
  };
  // Finds the module's file, whose functions are at these addresses in memory.
  void Place(DomainId domain, const std::string& module, std::span<const LoadedFunction> functions,
             const ModuleKernel& kernel, const Finders& finders);
  // Returns what unwinding needs to know of the code at the address; nothing: it is in no module
  // that was placed. O(log n).
  [[nodiscard]] std::optional<UnwindCode> CodeAt(DomainId domain, Address address) const;

  // Code in a module's file.
  struct Location {
    ImageFile* file = nullptr;
    Address address = 0;  // as in the file (ImageFile::OpenModule)
  };
  // Returns where the code at the address is in its file; nothing: it is in no module that was
  // placed. O(log n).
  [[nodiscard]] std::optional<Location> LocationOf(DomainId domain, Address address) const;

  // Returns the modules that cannot be unwound, of those for which Place was called, with the
  // reason: "brd: ...".
  [[nodiscard]] std::vector<std::string> Missing(DomainId domain) const;

  struct Used {
    DomainId domain;
    std::shared_ptr<const ModuleFile> file;
    const FileContent* debug = nullptr;  // its debug file; null: none was read
    std::string build_id;
  };
  // Returns the files of the modules that were placed, and their debug files.
  [[nodiscard]] std::vector<Used> UsedFiles() const;

 private:
  struct Table {
    std::string bytes;
    UnwindTable table;
  };
  struct Placed {
    LoadedCode code;
    const UnwindTable* table = nullptr;  // null: its code has no ORC
    ImageFile* image = nullptr;
  };
  struct Domain {
    std::vector<std::shared_ptr<const ModuleFile>> given;
    std::map<std::string, std::string, std::less<>> why_not;  // by module; empty: it has ORC
    std::vector<Placed> placed;                               // by address
    std::vector<std::shared_ptr<const ModuleFile>> used;
  };
  // The paths of the files in a directory of modules, by the name of the module.
  using Listing = absl::flat_hash_map<std::string, std::vector<std::string>>;

  // Returns whether a file of the module was placed; `why_not` becomes why chains do not go on in
  // it.
  bool PlaceGiven(const std::string& module, std::span<const LoadedFunction> functions,
                  const ModuleKernel& kernel, const FileFinder& here, Domain& domain,
                  std::string& why_not);
  bool PlaceInstalled(const std::string& module, std::span<const LoadedFunction> functions,
                      const ModuleKernel& kernel, const FileFinder& machine, Domain& domain,
                      std::string& why_not);
  // Adds the code of the file, if that is the loaded module's.
  absl::Status PlaceFile(const std::shared_ptr<const ModuleFile>& file,
                         std::span<const LoadedFunction> functions, const UnwindTable* table,
                         const FileFinder& finder, Domain& domain);
  const Listing& ListingOf(const FileFinder& finder, const std::string& release);
  absl::StatusOr<std::shared_ptr<const ModuleFile>> Open(const FileFinder& finder,
                                                         const std::string& path);
  // Returns the table; null: there is none.
  const UnwindTable* TableOf(const ModuleFile& file, std::optional<OrcLayout> layout);
  static const Placed* PlacedAt(const Domain& domain, Address address);

  std::shared_ptr<const IndexCache> cache_;
  absl::flat_hash_map<DomainId, Domain> domains_;
  std::map<std::pair<std::string, std::string>, Listing> listings_;  // by root and release
  // By root and path.
  std::map<std::pair<std::string, std::string>, std::shared_ptr<const ModuleFile>> opened_;
  std::map<std::pair<const ModuleFile*, OrcLayout>, std::unique_ptr<const Table>> tables_;
  std::map<const ModuleFile*, std::unique_ptr<ImageFile>> images_;
};

}  // namespace xenoscope::symbolizer
