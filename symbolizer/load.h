// Makes a resolver from files of symbols. A file's kind is recognised by its content, so that a
// user can name any file: texts as in text_symbols.h and ELF files, each also compressed
// (file_content.h).
//
// For a kernel or Xen the functions come from the first usable source, texts before ELF files, as
// texts have the addresses of the boot. An ELF file adds code, lines and inlined frames; KASLR's
// offset between the two is the distance of their _stext. A file of another build, by its build-id
// or by the length of its text, is a warning, and is never used beside one that fits. Xen's
// livepatches come from a list of them, and from their files, which are used where the list has
// their build-id.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/ids.h"
#include "base/mode.h"
#include "symbolizer/domain_symbols.h"

namespace xenoscope::symbolizer {

enum class SourceKind : uint8_t {
  kXen,         // xensyms, or the ELF file xen-syms, or of livepatches; the domain means nothing
  kKernel,      // a domain's kallsyms, System.map, or the ELF file vmlinux
  kModules,     // xensyms, the ELF file xen-syms, or livepatches; the domain is ignored
  kModuleFile,  // a module of a domain's kernel: NAME.ko
  kImage,       // what runs in a domain's user mode: an ELF file, nm's output, "address name" lines
  kVdso,        // what a domain's kernel gives its processes: an ELF file
  kPerfMaps,    // functions that JIT compilers wrote down, of a domain's processes
};

struct SymbolSource {
  DomainId domain;
  SourceKind kind = SourceKind::kKernel;
  std::string path;
  Address load_bias = 0;  // distance in bytes by which it runs above its own addresses, for kImage
  // The build-id of the file as it ran, in hexadecimal; empty: unknown. An ELF file with another
  // one is a warning.
  std::string build_id = {};
  // Whether the user named the file: then it is an error, not a warning, that it cannot be used.
  bool required = false;
};

// The place of the files of a domain's machine, under the names that its processes use.
struct SymbolRoot {
  DomainId domain;  // kEveryDomain: domains without a root of their own
  std::string directory;
};

// The release of a domain's kernel, as uname -r prints it.
struct KernelRelease {
  DomainId domain;
  std::string release;
};

// The sources of symbols of a report.
struct SymbolSources {
  std::vector<SymbolSource> sources;  // sources; of one domain and kind, better ones first
  std::vector<SymbolRoot> roots;
  std::vector<KernelRelease> kernels;  // where kernels' modules are, if no vmlinux says that
  std::string images;                  // directory of processes' files by build-id; empty: none
  std::shared_ptr<const IndexCache> cache;  // cache of debug information; null: none
  // Server that is asked for files that are found nowhere; null: none.
  std::shared_ptr<DebugServer> server;
};

struct LoadedSymbols {
  std::unique_ptr<DomainSymbols> resolver;
  std::vector<std::string> warnings;  // warnings for a user, whole sentences that name the file
};

// Returns the files of symbols in a recording's directory, as docs/recording-format.md names them:
// symbols/{xensyms,xen-syms}, symbols/livepatches/ and
// symbols/dom0.{kallsyms,modules,vdso,perf-maps},
// guests/DOMID/{kallsyms,System.map,modules,vmlinux,vdso,perf-maps}, the modules in
// guests/DOMID/kernel-modules/, all other files in guests/DOMID/ and guests/DOMID/images/ as
// images, and symbols/images/ by build-id; each also with
// ".zst". Files that do not exist are left out: a recording without symbols is valid.
SymbolSources SourcesInRecording(const std::string& directory);

// The directory, within a domain's in a recording, of its kernel's modules.
inline constexpr const char* kModulesInRecording = "kernel-modules";

// Returns whether a file of kind kXen is a list of livepatches, or the file of one.
bool IsOfLivepatches(Bytes content);

// Reads all sources. A file that is damaged or hides its addresses becomes a warning, and the
// reason that the resolver gives for addresses which the file would have resolved. Error: a
// required source cannot be used.
absl::StatusOr<LoadedSymbols> LoadSymbols(const SymbolSources& sources);

}  // namespace xenoscope::symbolizer
