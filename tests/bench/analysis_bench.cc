// The hot paths of a trace: the ordered stream, following it, the timeline, each analysis, all of
// them. XENOSCOPE_TRACE names the trace; default: that of the small recording, which is in the
// processor's cache. Figures are nanoseconds a record.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "analysis/analyse_trace.h"
#include "analysis/record_pipeline.h"
#include "analysis/summary/registry.h"
#include "analysis/warm_up_filter.h"
#include "trace/trace_file.h"

namespace xenoscope {
namespace {

const trace::TraceFile& TheTrace() {
  static const trace::TraceFile* const kFile = [] {
    const char* path = std::getenv("XENOSCOPE_TRACE");
    auto file = trace::TraceFile::Open(path == nullptr ? "" : path);
    if (!file.ok()) std::abort();
    return new trace::TraceFile(*std::move(file));
  }();
  return *kFile;
}

void SetRate(benchmark::State& state, uint64_t records) {
  state.SetItemsProcessed(static_cast<int64_t>(records));
}

void BM_Stream(benchmark::State& state) {
  uint64_t records = 0;
  // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): the loop of the benchmark library
  for (auto _ : state) {
    auto stream = TheTrace().Stream();
    for (auto batch = stream.Batch(); !batch.empty(); batch = stream.Batch()) {
      records += batch.size();
    }
  }
  SetRate(state, records);
}
BENCHMARK(BM_Stream)->Unit(benchmark::kMillisecond);

void BM_Skim(benchmark::State& state) {
  uint64_t records = 0;
  analysis::RecordPipeline pipeline({});
  pipeline.StartWarmUp();
  const auto events = pipeline.SubscribedEvents();
  // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): the loop of the benchmark library
  for (auto _ : state) {
    auto stream = TheTrace().Stream();
    struct Counter {
      uint64_t& records;
      void TakeRecord(const trace::Record& /*record*/,
                      const analysis::Dispatcher::EventRoute& /*route*/) const {
        ++records;
      }
      void TakeNonRecord(const trace::Item& /*item*/) const { ++records; }
    } counter{records};
    stream.ForEach<false, trace::RecordOrder::kCrossing>(stream.kEnd, events, counter);
  }
  SetRate(state, records);
}
BENCHMARK(BM_Skim)->Unit(benchmark::kMillisecond);

void BM_Follow(benchmark::State& state) {
  const auto all = analysis::AllAnalyses();
  // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): the loop of the benchmark library
  for (auto _ : state) {
    analysis::RecordPipeline pipeline(analysis::SubscribersOf(all));
    pipeline.StartWarmUp();
    analysis::WarmUpFilter filter(TheTrace().bytes(), pipeline);
    auto stream = TheTrace().Stream();
    pipeline.Pass<false>(stream, stream.kEnd, filter);
  }
}
BENCHMARK(BM_Follow)->Unit(benchmark::kMillisecond);

void RunLane(benchmark::State& state, const std::vector<std::unique_ptr<analysis::Analysis>>& all) {
  uint64_t records = 0;
  // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): the loop of the benchmark library
  for (auto _ : state) {
    analysis::RecordPipeline pipeline(analysis::SubscribersOf(all));
    auto stream = TheTrace().Stream();
    pipeline.Pass<true>(stream, stream.kEnd, pipeline);
    records += stream.TakenVolume().Total().records;
  }
  SetRate(state, records);
}

void BM_Timeline(benchmark::State& state) { RunLane(state, {}); }
BENCHMARK(BM_Timeline)->Unit(benchmark::kMillisecond);

void BM_Analysis(benchmark::State& state) {
  auto all = analysis::AllAnalyses();
  std::vector<std::unique_ptr<analysis::Analysis>> one;
  one.push_back(std::move(all[static_cast<size_t>(state.range(0))]));
  state.SetLabel(std::string(one.front()->Groups().front().key));
  RunLane(state, one);
}
BENCHMARK(BM_Analysis)
    ->DenseRange(0, static_cast<int64_t>(std::size(analysis::kAnalyses)) - 1)
    ->Unit(benchmark::kMillisecond);

void BM_AllAnalyses(benchmark::State& state) { RunLane(state, analysis::AllAnalyses()); }
BENCHMARK(BM_AllAnalyses)->Unit(benchmark::kMillisecond);

void BM_Summary(benchmark::State& state) {
  // NOLINTNEXTLINE(clang-analyzer-deadcode.DeadStores): the loop of the benchmark library
  for (auto _ : state) {
    benchmark::DoNotOptimize(analysis::AnalyseTrace(TheTrace(), {}, analysis::AllAnalyses,
                                                    static_cast<unsigned>(state.range(0))));
  }
}
BENCHMARK(BM_Summary)->Arg(1)->Arg(2)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace xenoscope
