// Fuzzes trace files: the stream's times never go back, every byte is in one item, and all analyses
// and views of the summary run to their end, with one thread and with two alike.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "analysis/analyse_trace.h"
#include "analysis/summary/registry.h"
#include "base/bytes.h"
#include "report/summary/summary_view.h"
#include "trace/trace_file.h"

namespace xenoscope {
namespace {

void CheckStream(const trace::TraceFile& file) {
  uint64_t accounted = file.index().header_bytes;
  Tsc last;
  trace::OrderedStream stream = file.Stream();
  while (const trace::Item* item = stream.Next()) {
    if (item->record.tsc < last) std::abort();
    last = item->record.tsc;
    switch (item->kind) {
      case trace::ItemKind::kDamaged:
        accounted += item->damage.bytes;
        break;
      case trace::ItemKind::kLossBegin:
      case trace::ItemKind::kPcpuBegin:
      case trace::ItemKind::kPcpuEnd:
        break;
      default:
        accounted += item->record.SizeBytes();
    }
  }
  if (accounted != file.bytes().size()) std::abort();
}

std::string Summary(const trace::TraceFile& file, unsigned threads) {
  const auto result = analysis::AnalyseTrace(file, {}, analysis::AllAnalyses, threads);
  if (!result.ok()) std::abort();  // only accounting that fails is an error here
  const auto names = [](DomainId) { return std::string(); };
  (void)report::SummaryText(*result, names, {});
  (void)report::SummaryCsv(result->document);
  return report::SummaryJson(*result, names)
      .dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace
}  // namespace xenoscope

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const xenoscope::Bytes bytes = std::as_bytes(std::span(data, size));
  const auto file = xenoscope::trace::TraceFile::FromBytes(bytes, "fuzz");
  if (!file.ok()) return 0;
  xenoscope::CheckStream(*file);
  if (xenoscope::Summary(*file, 1) != xenoscope::Summary(*file, 2)) std::abort();
  return 0;
}
