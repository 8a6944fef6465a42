// Fuzzes whole recordings, as directories. There is no crash and no hang; samples stay in their
// files, an archive holds what can be read, and unpacking gives what was packed.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "fuzz_recording.h"
#include "recording/process_reader.h"
#include "recording/recording.h"
#include "trace/trace_file.h"

namespace {

using xenoscope::recording::Recording;

void ReadSamples(const Recording& recording, size_t source) {
  auto stream = recording.OpenSamples(source);
  if (!stream.ok()) return;
  uint64_t samples = 0;
  while (stream->reader.Next()) ++samples;
  const auto& damage = stream->reader.damage();
  constexpr uint64_t kSmallestEntry = 16;
  if (samples * kSmallestEntry + damage.torn_bytes + damage.skipped_bytes >
      stream->file.bytes().size()) {
    std::abort();
  }
  auto processes = xenoscope::recording::ProcessReader::Open(stream->file.bytes());
  if (!processes.ok()) return;
  while (const auto record = processes->Next()) {
    if (record->text.size() > stream->file.bytes().size()) std::abort();
  }
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace fuzz = xenoscope::fuzz;
  static const fuzz::WorkDirectory directory;
  directory.Clear();
  const auto parts = fuzz::PartsOf(xenoscope::AsText(std::as_bytes(std::span(data, size))));
  for (size_t i = 1; i < parts.size(); ++i) fuzz::WriteFilePart("made.xeno", parts[i]);
  const auto recording = Recording::Open("made.xeno");
  if (!recording.ok()) return 0;
  for (size_t source = 0; source < recording->info().sources.size(); ++source) {
    ReadSamples(*recording, source);
  }
  for (const auto& symbols : recording->info().symbols) (void)recording->OpenSymbols(symbols);
  if (const auto trace = recording->OpenTrace(); trace.ok()) {
    (void)xenoscope::trace::TraceFile::Open(trace->path());
  }
  return 0;
}
