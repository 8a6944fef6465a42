// The interface by which addresses become functions. symbolizer/ implements it; other rooms are
// given a Resolver, and do not depend on how it works.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/address_space_id.h"
#include "base/ids.h"
#include "base/mode.h"

namespace xenoscope {

// The number of a function that a resolver has met; valid for the life of the resolver. Numbers
// count up from 0.
struct FunctionId {
  uint32_t value = 0;
  constexpr auto operator<=>(const FunctionId&) const = default;
};

struct Function {
  std::string image;       // "xen", "vmlinux", "[nf_tables]", a file's name, "[unknown]"
  std::string name;        // demangled; without a function "[gap]", "[no symbols]": one a reason
  std::string unresolved;  // empty, or why there is no function ("no symbols for d3's user mode")
};

struct SourceLine {
  std::string file;
  uint32_t line = 0;
};

// One level of inlining. Frames come innermost first; the last one is the function itself.
struct Frame {
  std::string function;
  SourceLine call_site_or_line;
};

class Resolver {
 public:
  virtual ~Resolver() = default;
  // Returns the function that holds `address` in this domain and mode. Mode::kXen ignores the
  // domain. Never fails: an address without a function gets an id whose Function says why. Not
  // thread-safe.
  virtual FunctionId Resolve(DomainId domain, Mode mode, Address address) = 0;
  // Does the same for an address in user mode, in the memory of a known process.
  virtual FunctionId ResolveInProcess(DomainId domain, AddressSpaceId /*space*/, Address address) {
    return Resolve(domain, Mode::kUser, address);
  }
  // Returns what stands for code of a guest that this domain runs itself, whose symbols are not
  // those of the domain.
  virtual FunctionId ResolveNested(DomainId domain, Mode mode, Address address) {
    return Resolve(domain, mode, address);
  }
  virtual const Function& Describe(FunctionId id) const = 0;
  // Returns where the function of this name begins; nothing where no symbols have it. O(functions).
  virtual std::optional<Address> AddressOf(DomainId /*domain*/, Mode /*mode*/,
                                           std::string_view /*name*/) const {
    return std::nullopt;
  }
  // Returns the inlined frames and lines at the address, innermost first; none without debug
  // information.
  virtual std::vector<Frame> Inlined(DomainId domain, Mode mode, Address address) = 0;
};

}  // namespace xenoscope
