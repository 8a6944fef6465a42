// The readers of symbols that are text, one file each: xensyms.cc, kallsyms.cc, system_map.cc,
// nm_symbols.cc, address_names.cc. None trusts its input. Each counts lines that are not symbols in
// SymbolTable::lines, and returns an error that says what to do when the text is of no use. The
// tables point into the text. O(length) time and memory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/mode.h"
#include "symbolizer/symbol_table.h"

namespace xenoscope::symbolizer {

inline constexpr std::string_view kXenImage = "xen";
inline constexpr std::string_view kKernelImage = "vmlinux";

// Reads dom0's /proc/xen/xensyms: "%016llx %c %s" (the kernel's drivers/xen/xenfs/xensyms.c). Names
// of static functions that are not unique include their file: "common/vmap.c#vm_alloc".
absl::StatusOr<SymbolTable> ReadXensyms(std::string_view text);

// One line of /proc/modules.
struct Module {
  std::string name;
  Address base = 0;
  uint64_t size = 0;
};

struct ModuleList {
  std::vector<Module> modules;  // modules with an address
  uint64_t hidden = 0;          // modules without an address, which kptr_restrict hides
  uint64_t malformed = 0;       // lines that are not modules
};

// Reads /proc/modules: "name size users list,of,users state 0xaddress" (the kernel's m_show).
ModuleList ReadModules(std::string_view text);

// Reads Linux's /proc/kallsyms: the kernel as image "vmlinux", a module as image "[name]". The last
// function of a module that is in `modules` ends with the module. Addresses that kptr_restrict
// hides are an error, for the kernel and modules alike.
absl::StatusOr<SymbolTable> ReadKallsyms(std::string_view text,
                                         const std::vector<Module>& modules = {});

// Reads a kernel's System.map: nm's lines, at the addresses that it was linked for.
absl::StatusOr<SymbolTable> ReadSystemMap(std::string_view text);

// Reads the output of nm, with or without --print-size and --demangle, as symbols of `image`.
absl::StatusOr<SymbolTable> ReadNm(std::string_view text, std::string_view image);

// Reads "ADDRESS NAME" lines, the symbol files that xenalyze takes, as symbols of `image`. Every
// symbol counts as a function.
absl::StatusOr<SymbolTable> ReadAddressNames(std::string_view text, std::string_view image);

}  // namespace xenoscope::symbolizer
