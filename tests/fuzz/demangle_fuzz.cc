// Fuzzes mangled names. There is no crash, no hang and no endless name.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/bytes.h"
#include "symbolizer/demangle.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view name = xenoscope::AsText(std::as_bytes(std::span(data, size)));
  if (xenoscope::symbolizer::Demangled(name).size() > size + (size_t{64} << 20)) std::abort();
  return 0;
}
