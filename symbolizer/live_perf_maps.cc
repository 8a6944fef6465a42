#include "symbolizer/live_perf_maps.h"

#include <utility>

#include "symbolizer/file_content.h"
#include "symbolizer/load.h"
#include "symbolizer/text/perf_maps.h"

namespace xenoscope::symbolizer {

void LivePerfMaps::ReadNew(const std::string& directory, ProcessImages& processes) {
  for (const SymbolSource& source : SourcesInRecording(directory).sources) {
    if (source.kind != SourceKind::kPerfMaps) continue;
    const auto file = FileContent::Open(source.path);
    if (!file.ok()) continue;
    FileIdentity& read = read_[source.domain];
    if (std::exchange(read, file->identity()) == file->identity()) continue;
    processes.SetPerfMaps(source.domain, PerfMaps::Read(AsText(file->bytes())));
  }
}

}  // namespace xenoscope::symbolizer
