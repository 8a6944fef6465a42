#include "symbolizer/demangle.h"

#include <cxxabi.h>

// <string.h> declares a basename() that conflicts with libiberty's.
#define HAVE_DECL_BASENAME 1
#include <libiberty/demangle.h>

#include <algorithm>
#include <csetjmp>
#include <cstdlib>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_replace.h"

namespace xenoscope::symbolizer {
namespace {

// Limit of a name. Names that demangle to a long text refer back to their own parts ("S1_"), and
// each reference can double the text: a short name has few references.
constexpr size_t kMaxNameBytes = 2048;
constexpr size_t kMaxResultBytes = size_t{64} << 10;

std::string CxxName(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && plain ? std::string(plain.get()) : name;
}

// Returns whether it is a name of Rust before v0: C++'s mangling, with a hash of 16 digits at the
// end.
bool IsLegacyRust(std::string_view name) {
  constexpr std::string_view kHash = "17h";
  constexpr size_t kDigits = 16;
  if (!name.starts_with("_ZN") || !name.ends_with('E')) return false;
  if (name.size() < 3 + kHash.size() + kDigits + 1) return false;
  const std::string_view end = name.substr(name.size() - kHash.size() - kDigits - 1);
  return end.starts_with(kHash) &&
         std::all_of(end.begin() + kHash.size(), end.end() - 1,
                     [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

// Returns the name without LLVM's suffix: link-time optimization appends ".llvm." and a number to
// names that were local.
std::string_view WithoutLlvmsNumber(std::string_view name) {
  constexpr std::string_view kMark = ".llvm.";
  const size_t at = name.rfind(kMark);
  if (at == std::string_view::npos) return name;
  const std::string_view number = name.substr(at + kMark.size());
  const bool is_number =
      !number.empty() && number.find_first_not_of("0123456789ABCDEF") == std::string_view::npos;
  return is_number ? name.substr(0, at) : name;
}

// Returns whether a Rust v0 name may bind so many lifetimes that libiberty seems to hang: it counts
// them one by one, also where it prints nothing and so no result gets too long. A binder is "G",
// the number in base 62 and "_", in a function's type "F" or in that of a trait object "D" (Rust
// RFC 2603). Names with such an identifier ("DGRAM_") are taken for it, too.
bool HasLongBinder(std::string_view name) {
  constexpr size_t kMaxDigits = 2;  // 3,844 lifetimes
  for (size_t g = name.find('G', 1); g != name.npos; g = name.find('G', g + 1)) {
    if (name[g - 1] != 'F' && name[g - 1] != 'D') continue;
    size_t end = g + 1;
    while (end < name.size() && absl::ascii_isalnum(static_cast<unsigned char>(name[end]))) ++end;
    if (end < name.size() && name[end] == '_' && end - g - 1 > kMaxDigits) return true;
  }
  return false;
}

// A result that libiberty returns in pieces.
struct Result {
  std::string text;
  std::jmp_buf too_long;
};

void Append(const char* piece, size_t size, void* opaque) {
  auto* result = static_cast<Result*>(opaque);
  if (result->text.size() + size > kMaxResultBytes) {
    // Back-references of a hostile name double the text again and again, and libiberty has no other
    // way to stop: between here and RustName() there are only C functions.
    std::longjmp(result->too_long, 1);  // NOLINT(cert-err52-cpp)
  }
  result->text.append(piece, size);
}

std::string RustName(const std::string& name, const std::string& without_suffix) {
  Result result;
  if (setjmp(result.too_long) != 0) return name;  // NOLINT(cert-err52-cpp)
  if (rust_demangle_callback(without_suffix.c_str(), DMGL_PARAMS, &Append, &result) == 0) {
    return name;
  }
  return std::move(result.text);
}

// Go's linker writes the dots of a package's last part as %2e: "gopkg.in/yaml%2ev3.Unmarshal".
std::string GoName(const std::string& name) { return absl::StrReplaceAll(name, {{"%2e", "."}}); }

}  // namespace

std::string Demangled(std::string_view name) {
  std::string mangled(name);
  if (name.size() > kMaxNameBytes) return mangled;
  const std::string_view plain = WithoutLlvmsNumber(name);
  if (plain.starts_with("_R") && HasLongBinder(plain)) return mangled;
  if (plain.starts_with("_R") || IsLegacyRust(plain)) return RustName(mangled, std::string(plain));
  if (name.starts_with("_Z")) return CxxName(mangled);
  return name.find('/') != std::string_view::npos ? GoName(mangled) : mangled;
}

}  // namespace xenoscope::symbolizer
