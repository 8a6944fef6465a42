// The Resolver: symbols of Xen and of many domains at once, whose addresses overlap.
//
//   (domain, mode)  ->  a space: images, each an index and by how much it was moved
//   Mode::kXen      ->  one space, whatever the domain
//
// In a kernel's space the first image that has a function wins. In a user-mode space several
// programs may lie at one address and a sample does not say whose it is: then it is ambiguous.
//
// An address without a function gets one of a few functions whose name is in brackets and whose
// `unresolved` says why, one for each reason and not one for each address, so that a report has one
// line for what a domain without symbols did:
//   [no symbols]  none were given for this domain and mode, or they were of no use
//   [gap]         inside an image's text, in none of the functions that are known of it
//   [outside]     before the first or after the last function of all images
//   [stub]        code that Xen generates: where PV guests' system calls enter it
//   [ambiguous]   user mode, and several programs have a function there
// and an address that stands for the end of a call chain the name of that (base/user_registers.h).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/resolver.h"
#include "base/user_registers.h"
#include "symbolizer/image_file.h"
#include "symbolizer/kernel_modules.h"
#include "symbolizer/process_images.h"
#include "symbolizer/symbol_index.h"

namespace xenoscope::symbolizer {

// The files that an answer about an address comes from.
struct SymbolOrigin {
  std::string functions;  // the file that names the function; empty: none does
  std::string lines;      // the file that knows the line; empty: none does
  std::string build_id;   // build-id of the ELF file, hexadecimal; empty: not known
  std::string missing;    // what is not known, why, and what would help
};

class DomainSymbols : public Resolver {
 public:
  // Adds an image to a space; it lies `bias` bytes above the addresses of its index. Domains that
  // run the same kernel can share an index. `origin` is the file of the symbols.
  void Add(DomainId domain, Mode mode, std::shared_ptr<const SymbolIndex> symbols, Address bias = 0,
           std::string origin = "");
  // Adds code, lines and inlined frames to a space, from a file that lies `bias` bytes above its
  // own addresses.
  void AddFile(DomainId domain, Mode mode, std::shared_ptr<ImageFile> file, Address bias = 0);
  // States that the kernel's functions are at the addresses of its file, and that KASLR may have
  // moved it.
  void SetMayBeRelocated(DomainId domain) {
    spaces_[SpaceKey(domain, Mode::kKernel)].may_be_relocated = true;
  }
  [[nodiscard]] bool AnyMayBeRelocated() const;
  // Moves the domain's kernel to where the sampled addresses say that it was, if it may have been
  // moved. Returns what was found, or why nothing was, for a user; nothing where the kernel lies as
  // in its file. To be called before Resolve.
  std::optional<std::string> FindShift(DomainId domain, std::span<const Address> sampled);
  // States that code of `image` lies in [begin, end), of which only some functions are known; `why`
  // says that to a user, and what would help.
  void AddPart(DomainId domain, Mode mode, std::string image, Address begin, Address end,
               std::string why);
  // Sets the reason that is given for addresses in a space without an image: "kptr_restrict hides
  // ...".
  void SetMissingReason(DomainId domain, Mode mode, std::string_view reason);

  // Returns the function at the address. Functions of one image and name share an id across
  // domains, so that domains with the same kernel can be compared. O(1) for a recent address, else
  // O(images log symbols).
  FunctionId Resolve(DomainId domain, Mode mode, Address address) override;
  // Returns the function by the process's maps, if processes() has them.
  FunctionId ResolveInProcess(DomainId domain, AddressSpaceId space, Address address) override;
  // There is one function for each domain: nobody has the symbols of its guests.
  FunctionId ResolveNested(DomainId domain, Mode mode, Address address) override;
  ProcessImages& processes() { return processes_; }
  [[nodiscard]] const Function& Describe(FunctionId id) const override {
    return functions_[id.value];
  }
  [[nodiscard]] std::optional<Address> AddressOf(DomainId domain, Mode mode,
                                                 std::string_view name) const override;
  // Returns the inlined frames, where the address has a function and a file with DWARF was added.
  std::vector<Frame> Inlined(DomainId domain, Mode mode, Address address) override;
  // Returns the file and the place in it of the code at the address; nothing where the address has
  // no function. `space` matters in user mode only.
  std::optional<CodeLocation> LocationOf(DomainId domain, Mode mode, AddressSpaceId space,
                                         Address address);

  // Returns what unwinding by ORC needs to know of the code at an address of the domain's kernel.
  // Looks up the file of a module whose code was not met before. Not thread-safe.
  UnwindCode KernelCodeAt(DomainId domain, Address address);
  KernelModules& modules() { return modules_; }
  // Sets the release of the domain's kernel, as uname -r prints it: where its modules are, if no
  // vmlinux says that.
  void SetKernelRelease(DomainId domain, std::string release) {
    releases_.insert_or_assign(domain, std::move(release));
  }
  // Returns what unwinding needs to know of the code at an address in user mode of a domain whose
  // processes are not known: that of the file that the address space has there, or else of the only
  // file given for the domain that has code there. Not thread-safe.
  UnwindCode UserCodeAt(DomainId domain, AddressSpaceId space, Address address);
  // Returns why the domain's kernel cannot be unwound by ORC, for a user; empty: it can.
  std::string WhyNoOrc(DomainId domain);

  // Returns the files behind the answers about an address. `space` matters in user mode only.
  SymbolOrigin OriginOf(DomainId domain, Mode mode, AddressSpaceId space, Address address);

  // Returns messages on the kernels whose symbols do not fit the addresses resolved so far, one
  // each, or of many one each for the first three and one with the number of the others: those of a
  // guest that KASLR moved and whose symbols are those of its file, or symbols of another boot.
  [[nodiscard]] std::vector<std::string> Mismatches() const;

 private:
  static constexpr uint32_t kNoSpace = ~uint32_t{0};  // no SpaceKey has this value

  struct Image {
    std::shared_ptr<const SymbolIndex> symbols;
    Address bias = 0;
    std::string origin;
    std::vector<FunctionId> functions;  // ids by symbol, set at the first use
  };
  struct File {
    std::shared_ptr<ImageFile> file;
    Address bias = 0;
  };
  struct Part {
    std::string image;
    Address begin = 0;
    Address end = 0;
    std::string why;
  };
  struct Space {
    std::vector<Image> images;
    std::vector<File> files;
    std::vector<Part> parts;
    std::string missing_reason;
    bool may_be_relocated = false;
    // Number of distinct addresses in the part of memory where Linux's text lies, for Mismatches().
    uint64_t in_kernel_area = 0;
    uint64_t in_kernel_area_unresolved = 0;
  };
  struct Memo {
    Address address = 0;
    uint32_t space = kNoSpace;
    FunctionId function;
  };
  static constexpr FunctionId kNotResolved{~uint32_t{0}};
  static constexpr size_t kMemos = 8192;

  static uint32_t SpaceKey(DomainId domain, Mode mode);
  Space& SpaceOf(DomainId domain, Mode mode);
  // A function, by its number in an image.
  struct Place {
    const Image* image = nullptr;
    uint32_t symbol = SymbolIndex::kNoSymbol;
  };
  // Returns the function at the address in the first image that has one; null: none is known there.
  Place PlaceAt(DomainId domain, Mode mode, Address address);
  // Returns its name as its file has it; empty: none is known there.
  std::string_view NameAt(DomainId domain, Mode mode, Address address);
  // Returns the file of the domain's kernel that has ORC; null: there is none.
  const File* KernelWithOrc(DomainId domain);
  // Returns what is to be known of the domain's kernel for its modules.
  const ModuleKernel& ModuleKernelOfDomain(DomainId domain);
  // Finds the file of the module that has this function in kallsyms, if that was not done before.
  // False: it is in no module, or the file was looked up before.
  bool PlaceModuleOf(DomainId domain, const Place& place);
  // Returns the place in its module's file of the code at the address, which has this function.
  std::optional<KernelModules::Location> ModuleLocation(DomainId domain, const Place& place,
                                                        Address address);
  // Returns what unwinding needs to know of the code of a module; nothing: the address is in none
  // whose file is known.
  std::optional<UnwindCode> ModuleCodeAt(DomainId domain, Address address);
  FunctionId ResolveIn(DomainId domain, Mode mode, Space& space, Address address);
  FunctionId EndOfChain(ChainEnd end);
  FunctionId Unresolved(DomainId domain, Mode mode, const Space& space, Address address);
  FunctionId Intern(std::string_view image, std::string_view name, std::string_view unresolved);

  absl::flat_hash_map<uint32_t, Space> spaces_;
  ProcessImages processes_;
  KernelModules modules_;
  absl::flat_hash_map<DomainId, ModuleKernel> module_kernels_;
  absl::flat_hash_map<DomainId, std::string> releases_;
  std::deque<Function> functions_;  // a deque: references from Describe() stay valid
  absl::flat_hash_map<std::string, FunctionId> ids_;
  std::vector<Memo> memos_ = std::vector<Memo>(kMemos);
};

}  // namespace xenoscope::symbolizer
