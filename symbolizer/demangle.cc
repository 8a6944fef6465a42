#include "symbolizer/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace xenoscope::symbolizer {
namespace {

// What demangles to a long text refers back to its own parts ("S1_"), and each reference can double
// the text: few references bound it.
constexpr size_t kLongestName = 2048;

}  // namespace

std::string Demangled(std::string_view name) {
  if (!name.starts_with("_Z") || name.size() > kLongestName) return std::string(name);
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> plain(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && plain ? std::string(plain.get()) : std::string(name);
}

}  // namespace xenoscope::symbolizer
