// Runs one analysis over a small trace: in one piece, and divided at its instants, after warm-ups
// of every length, which must give the same result.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/analyse_trace.h"
#include "analysis/analysis.h"
#include "analysis/summary/registry.h"
#include "trace/trace_file.h"

namespace xenoscope::analysis {

// Returns the instants, except the first, at which something happens: partitions can begin there.
// Of many instants it returns some.
inline std::vector<Tsc> InstantsOf(const trace::TraceFile& file) {
  std::set<Tsc> instants;
  trace::OrderedStream stream = file.Stream();
  while (const trace::Item* item = stream.Next()) instants.insert(item->record.tsc);
  instants.erase(instants.begin());
  const size_t most = instants.size() > 1000 ? 4 : 40;
  const size_t step = instants.size() / most + 1;
  std::vector<Tsc> some;
  size_t i = 0;
  for (const Tsc instant : instants) {
    if (i++ % step == 0) some.push_back(instant);
  }
  return some;
}

// Divides the range into steps of equal length, each warmed up by this part of what comes before.
inline std::vector<PartitionBegin> EqualSteps(TscRange range, uint64_t steps, double warm_up) {
  std::vector<PartitionBegin> begins;
  for (uint64_t step = 1; step < steps; ++step) {
    const Cycles before = range.Length() * step / steps;
    const auto skipped = static_cast<Cycles>(static_cast<double>(before) * (1 - warm_up));
    begins.push_back({range.begin + before, range.begin + skipped});
  }
  return begins;
}

inline AnalysisResult AnalyseOne(const trace::TraceFile& file, const TraceHints& hints,
                                 MakeAnalysis make) {
  const MakeAnalyses make_all = [make] {
    std::vector<std::unique_ptr<Analysis>> analyses;
    analyses.push_back(make());
    return analyses;
  };
  auto whole = AnalyseDivision(file, hints, make_all, {});
  EXPECT_TRUE(whole.ok()) << whole.status();
  const std::vector<Tsc> instants = InstantsOf(file);
  // One partition for each instant, and two partitions; warmed up by all that comes before, or by a
  // part of it.
  std::vector<std::vector<PartitionBegin>> divisions(2);
  for (size_t i = 0; i < instants.size(); ++i) {
    divisions[0].push_back({instants[i], std::nullopt});
    divisions[1].push_back({instants[i], instants[i / 2]});
    divisions.push_back({{instants[i], std::nullopt}});
    divisions.push_back({{instants[i], instants[i / 2]}});
    divisions.push_back({{instants[i], instants[i]}});
  }
  for (const std::vector<PartitionBegin>& begins : divisions) {
    if (begins.empty()) continue;
    const auto divided = AnalyseDivision(file, hints, make_all, PartitionAtEach(begins));
    EXPECT_TRUE(divided.ok()) << divided.status();
    const std::string where =
        fmt::format("divided at {}, {} slices, warm-up from {}", begins.back().at.value,
                    begins.size() + 1, begins.back().warm_up.value_or(Tsc{0}).value);
    EXPECT_TRUE(divided->document == whole->document) << where;
    EXPECT_EQ(divided->trace.records, whole->trace.records) << where;
    EXPECT_EQ(divided->trace.last, whole->trace.last) << where;
    // A warm-up that followed everything has the whole state.
    if (!begins.back().warm_up) {
      EXPECT_EQ(divided->partitions_repeated, 0U) << where;
    }
  }
  return std::move(whole).value();
}

}  // namespace xenoscope::analysis
