// Fuzzes recording.json. There is no crash; what is accepted reads the same after it was written
// again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/bytes.h"
#include "recording/info_json.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using xenoscope::recording::FromJson;
  const auto text = xenoscope::AsText(std::as_bytes(std::span(data, size)));
  const auto info = FromJson(text);
  if (!info.ok()) return 0;
  const auto again = FromJson(xenoscope::recording::ToJson(*info));
  if (!again.ok() || !(*again == *info)) std::abort();
  return 0;
}
