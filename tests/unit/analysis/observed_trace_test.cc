#include "analysis/observed_trace.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "analysis/analyse_trace.h"
#include "analysis/summary/registry.h"
#include "correlate/timeline_pass.h"
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
  const std::array<correlate::TraceObserver*, 1> observers{&observed};
  correlate::ObserveTrace(*file, observers);
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
