// Fuzzes the file of options that are typed once.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cli/symbol_config.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto options = xenoscope::cli::ParseSymbolConfig(text, "/etc/xenoscope.conf");
  if (options.ok() && options->directory != "/etc") __builtin_trap();
  return 0;
}
