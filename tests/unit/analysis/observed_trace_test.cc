#include "analysis/observed_trace.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "analysis/analyse_trace.h"
#include "analysis/summary/registry.h"
#include "correlate/timeline.h"
#include "recording/plain_file.h"

namespace xenoscope::analysis {
namespace {

std::vector<std::unique_ptr<Analysis>> SomeAnalyses() {
  std::vector<std::unique_ptr<Analysis>> analyses;
  analyses.push_back(MakeDomainTotals());
  analyses.push_back(MakePcpus());
  analyses.push_back(MakeRunstates());
  analyses.push_back(MakePreemptions());
  analyses.push_back(MakeExits());
  analyses.push_back(MakePvEvents());
  return analyses;
}

TEST(ObservedTrace, DescribesWhatAPassOfItsOwnDescribes) {
  const auto plain = recording::PlainFile::Open(XENOSCOPE_TEST_DATA "/small.xeno/trace.xentrace");
  ASSERT_TRUE(plain.ok()) << plain.status();
  const auto file = trace::TraceFile::Open(plain->path());
  ASSERT_TRUE(file.ok()) << file.status();
  const auto pass = AnalyseTrace(*file, {}, SomeAnalyses, 1);
  ASSERT_TRUE(pass.ok()) << pass.status();

  ObservedTrace observed(SomeAnalyses());
  correlate::Timeline timeline(observed);
  trace::OrderedStream stream = file->Stream();
  while (const trace::Item* item = stream.Next()) {
    if (item->kind != trace::ItemKind::kRecord) {
      observed.OnNonRecord(*item);
    } else if (observed.Wants(item->record.event)) {
      observed.OnRecord(item->record, timeline);
    }
    timeline.Take(*item);
  }
  observed.OnTraceEnd(timeline);
  timeline.Finish();
  TraceMetadata metadata;
  metadata.dialect = pass->metadata.dialect;
  metadata.clock = pass->metadata.clock;
  const auto document = observed.Describe(std::move(metadata));
  ASSERT_TRUE(document);
  EXPECT_GT(document->domains.size(), 2U);
  EXPECT_TRUE(*document == pass->document);
  EXPECT_EQ(observed.range().begin, pass->metadata.range.begin);
  EXPECT_EQ(observed.range().end, pass->metadata.range.end);
}

TEST(ObservedTrace, SaysThatNothingWasObserved) {
  ObservedTrace observed(SomeAnalyses());
  EXPECT_FALSE(observed.Describe({}));
}

}  // namespace
}  // namespace xenoscope::analysis
