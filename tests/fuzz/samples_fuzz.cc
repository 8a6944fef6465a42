// samples/NAME.samples from anywhere: no crash, no hang, and every byte accounted for.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/bytes.h"
#include "recording/sample_reader.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const xenoscope::Bytes bytes = std::as_bytes(std::span(data, size));
  auto reader = xenoscope::recording::SampleReader::Open(bytes, 2);
  if (!reader.ok()) return 0;
  uint64_t samples = 0;
  while (reader->Next()) ++samples;
  const auto& damage = reader->damage();
  // Each sample takes 16 bytes, and none of those that were passed over.
  if (samples * 16 + damage.torn_bytes + damage.skipped_bytes > size) std::abort();
  return 0;
}
