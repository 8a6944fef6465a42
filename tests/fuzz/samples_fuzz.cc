// Fuzzes samples/NAME.samples. There is no crash and no hang, and every byte is accounted for.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/bytes.h"
#include "recording/process_reader.h"
#include "recording/sample_reader.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const xenoscope::Bytes bytes = std::as_bytes(std::span(data, size));
  auto reader = xenoscope::recording::SampleReader::Open(bytes, 2);
  if (!reader.ok()) return 0;
  uint64_t samples = 0;
  uint64_t callers = 0;
  while (const auto sample = reader->Next()) {
    ++samples;
    for (size_t i = 0; i < sample->callers.size(); ++i) callers += sample->callers.at(i) != 0;
  }
  const auto& damage = reader->damage();
  // Each sample takes 16 bytes, none of which was passed over.
  if (samples * 16 + callers * 8 + damage.torn_bytes + damage.skipped_bytes > size) std::abort();
  auto processes = xenoscope::recording::ProcessReader::Open(bytes);
  uint64_t records = 0;
  uint64_t text = 0;
  while (const auto record = processes->Next()) {
    ++records;
    text += record->text.size() + record->map.build_id.size();
    if (record->map.begin > record->map.end) std::abort();
  }
  if (records * 32 + text > size) std::abort();
  return 0;
}
