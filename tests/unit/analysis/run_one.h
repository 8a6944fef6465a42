// Runs one analysis over a small trace: in one piece, and divided at its instants, which must
// change nothing.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "analysis/analysis.h"
#include "analysis/run.h"
#include "trace/trace_file.h"

namespace xenoscope::analysis {

// The instants at which something happens, but for the first: where slices can begin. Of many,
// some.
inline std::vector<Tsc> InstantsOf(const trace::TraceFile& file) {
  std::set<Tsc> instants;
  trace::OrderedStream stream = file.Stream();
  while (const trace::Item* item = stream.Next()) instants.insert(item->record.tsc);
  instants.erase(instants.begin());
  constexpr size_t kMost = 40;
  const size_t step = instants.size() / kMost + 1;
  std::vector<Tsc> some;
  size_t i = 0;
  for (const Tsc instant : instants) {
    if (i++ % step == 0) some.push_back(instant);
  }
  return some;
}

using MakeAnalysis = std::unique_ptr<Analysis> (*)();

inline Result RunOne(const trace::TraceFile& file, const Known& known, MakeAnalysis make) {
  const MakeAnalyses make_all = [make] {
    std::vector<std::unique_ptr<Analysis>> analyses;
    analyses.push_back(make());
    return analyses;
  };
  auto whole = RunSlices(file, known, make_all, {});
  EXPECT_TRUE(whole.ok()) << whole.status();
  const std::vector<Tsc> instants = InstantsOf(file);
  std::vector<std::vector<Tsc>> divisions = {instants};  // a slice an instant
  for (const Tsc instant : instants) divisions.push_back({instant});
  for (const std::vector<Tsc>& begins : divisions) {
    const auto divided = RunSlices(file, known, make_all, begins);
    EXPECT_TRUE(divided.ok()) << divided.status();
    EXPECT_TRUE(divided->document == whole->document)
        << "divided at " << begins.front().value << ", " << begins.size() + 1 << " slices";
    EXPECT_EQ(divided->trace.records, whole->trace.records);
    EXPECT_EQ(divided->trace.last, whole->trace.last);
  }
  return std::move(whole).value();
}

}  // namespace xenoscope::analysis
