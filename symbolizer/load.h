// From files of symbols to a resolver. The files' kinds are told by what they hold, so that a user
// can name any of them: texts as text_symbols.h reads them and ELF files, each also as FILE.zst.
//
// Of a kernel or Xen the first usable source gives the functions, texts before ELF files: they have
// the addresses of the boot. An ELF file adds code, lines and inlined frames: KASLR's offset
// between the two is the distance of their _stext. A file of another build, by its build-id or by
// the length of its text, is a warning and never used beside one that fits. Xen's livepatches are
// beside these: a list of them, and their files, which are taken where the list has their build-id.
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
  kXen,       // xensyms, or the ELF file xen-syms, or of livepatches; the domain means nothing
  kKernel,    // a domain's kallsyms, System.map, or the ELF file vmlinux
  kModules,   // a domain's /proc/modules
  kImage,     // what runs in a domain's user mode: an ELF file, nm's output, "address name" lines
  kVdso,      // what a domain's kernel gives its processes: an ELF file
  kPerfMaps,  // what compilers at run time told of a domain's processes
};

struct SymbolSource {
  DomainId domain;
  SourceKind kind = SourceKind::kKernel;
  std::string path;
  Address load_bias = 0;  // kImage: how far above its own addresses it runs
  // In hexadecimal, as it ran; empty: unknown. An ELF file with another one is a warning.
  std::string build_id = {};
  // The user named it: that it cannot be used is an error and not a warning.
  bool required = false;
};

// Where the files of a domain's machine are, as its processes name them.
struct SymbolRoot {
  DomainId domain;  // kEveryDomain: of those that have none of their own
  std::string directory;
};

struct SymbolSources {
  std::vector<SymbolSource> sources;  // of one domain and kind, the better ones first
  std::vector<SymbolRoot> roots;
  std::string images;  // a directory of processes' files by build-id; empty: none
  std::shared_ptr<const IndexCache> cache;  // for debug information; null: none
  std::shared_ptr<DebugServer> server;      // asked for what is found nowhere; null: none
};

struct LoadedSymbols {
  std::unique_ptr<DomainSymbols> resolver;
  std::vector<std::string> warnings;  // whole sentences for a user, each naming its file
};

// The files of symbols in a recording's directory, as docs/recording-format.md names them:
// symbols/{xensyms,xen-syms}, symbols/livepatches/ and
// symbols/dom0.{kallsyms,modules,vdso,perf-maps},
// guests/DOMID/{kallsyms,System.map,modules,vmlinux,vdso,perf-maps} and all others in guests/DOMID/
// and guests/DOMID/images/ as images, and symbols/images/ by build-id; each also with ".zst". What
// is not there is left out: a recording without symbols is read too.
SymbolSources SourcesInRecording(const std::string& directory);

// Whether a file of kind kXen is of livepatches: a list of them, or the file of one.
bool IsOfLivepatches(Bytes content);

// Reads all sources. Files that are damaged or hide their addresses become warnings, and are the
// reason that the resolver gives for addresses that they would have resolved. Error: a
// required source cannot be used.
absl::StatusOr<LoadedSymbols> LoadSymbols(const SymbolSources& sources);

}  // namespace xenoscope::symbolizer
