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
#include "symbolizer/image_file.h"
#include "symbolizer/process_images.h"
#include "symbolizer/symbol_index.h"

namespace xenoscope::symbolizer {

// Where the answer about an address came from.
struct SymbolOrigin {
  std::string functions;  // the file that names it; empty: none does
  std::string lines;      // the file that knows its line; empty: none does
  std::string build_id;   // hexadecimal, of the ELF file; empty: not known
  std::string missing;    // why something is, and what would help
};

class DomainSymbols : public Resolver {
 public:
  // Adds an image to a space; it lies `bias` bytes above the addresses of its index. Indexes may be
  // shared: domains that run the same kernel need one. `origin` is the file that they are from.
  void Add(DomainId domain, Mode mode, std::shared_ptr<const SymbolIndex> symbols, Address bias = 0,
           std::string origin = "");
  // Adds code, lines and inlined frames to a space, from a file that lies `bias` bytes above its
  // own addresses.
  void AddFile(DomainId domain, Mode mode, std::shared_ptr<ImageFile> file, Address bias = 0);
  // The kernel's functions are where its file has them, and KASLR may have moved it.
  void SetMayBeRelocated(DomainId domain) {
    spaces_[SpaceKey(domain, Mode::kKernel)].may_be_relocated = true;
  }
  bool AnyMayBeRelocated() const;
  // Puts the domain's kernel where the addresses say that it was, if it may have been moved. What
  // was found, and why nothing was, for a user; nothing where it lies as its file has it. To be
  // called before Resolve.
  std::optional<std::string> FindShift(DomainId domain, std::span<const Address> sampled);
  // Code of `image` lies in [begin, end), of which only some functions are known; `why` tells a
  // user that and what would help.
  void AddPart(DomainId domain, Mode mode, std::string image, Address begin, Address end,
               std::string why);
  // What is said of addresses in a space that has no image: "kptr_restrict hides ...".
  void SetMissingReason(DomainId domain, Mode mode, std::string_view reason);

  // Functions of one image and name share an id, in whatever domain they ran: domains that run the
  // same kernel can be compared. O(1) for an address met recently, else O(images log symbols).
  FunctionId Resolve(DomainId domain, Mode mode, Address address) override;
  // By the process's maps, where processes() has them.
  FunctionId ResolveInProcess(DomainId domain, AddressSpaceId space, Address address) override;
  ProcessImages& processes() { return processes_; }
  const Function& Describe(FunctionId id) const override { return functions_[id.value]; }
  // From debug information, where the address has a function and a file with DWARF was added.
  std::vector<Frame> Inlined(DomainId domain, Mode mode, Address address) override;
  // Where in which file the code is that runs there; `space` counts in user mode. Nothing where the
  // address has no function.
  std::optional<CodeLocation> LocationOf(DomainId domain, Mode mode, AddressSpaceId space,
                                         Address address);

  // `space` counts in user mode.
  SymbolOrigin OriginOf(DomainId domain, Mode mode, AddressSpaceId space, Address address);

  // Kernels whose symbols do not fit the addresses resolved so far: a guest that was moved by KASLR
  // and whose symbols are those of its file, or symbols of another boot. One message each.
  std::vector<std::string> Mismatches() const;

 private:
  static constexpr uint32_t kNoSpace = ~uint32_t{0};  // no SpaceKey

  struct Image {
    std::shared_ptr<const SymbolIndex> symbols;
    Address bias = 0;
    std::string origin;
    std::vector<FunctionId> functions;  // of symbols, once they were met
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
    // Of distinct addresses in the part of memory where Linux's text lies, for Mismatches().
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
  FunctionId ResolveIn(DomainId domain, Mode mode, Space& space, Address address);
  FunctionId Unresolved(DomainId domain, Mode mode, const Space& space, Address address);
  FunctionId Intern(std::string_view image, std::string_view name, std::string_view unresolved);

  absl::flat_hash_map<uint32_t, Space> spaces_;
  ProcessImages processes_;
  std::deque<Function> functions_;  // a deque: what Describe() returned stays where it is
  absl::flat_hash_map<std::string, FunctionId> ids_;
  std::vector<Memo> memos_ = std::vector<Memo>(kMemos);
};

}  // namespace xenoscope::symbolizer
