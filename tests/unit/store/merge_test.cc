// What a store returns of slices is what one recording of all of them would say.
#include "store/merge.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <tuple>
#include <utility>

#include "correlate/subtotals.h"
#include "store/join.h"
#include "store/subtotals.h"
#include "tests/unit/store/simulated_host.h"
#include "trace/exit_name.h"

namespace xenoscope::store {
namespace {

using correlate::Dimension;
using correlate::Profile;
using correlate::ProfileRow;

constexpr uint64_t kHz = 1'000'000'000;
constexpr double kPeriod = 5000;

std::string NameOf(DomainId domain) { return domain.value == 0 ? "Domain-0" : "web"; }

// A recording of one event, which becomes the sums of a slice.
class Recording {
 public:
  explicit Recording(bool traced) : traced_(traced) {
    for (const std::vector<Dimension>& by : GatheredColumns()) {
      profiles_.push_back(std::make_unique<Profile>(
          correlate::ProfileOptions{.by = by, .period = kPeriod}, functions_));
      observers_.Add(profiles_.back().get());
    }
  }
  void AlsoTo(correlate::PlacingObserver& observer) { observers_.Add(&observer); }
  correlate::PlacingObserver& observer() { return observers_; }

  Slice TakeSlice(const std::string& host, Dictionary& dictionary) {
    profile::SampleSet samples;
    profile::ProfileResults results;
    samples.traced = traced_;
    for (const auto& profile : profiles_) results.sums.push_back(profile->TakeSums());
    return {{.host = host,
             .begin_ns = 0,
             .end_ns = 1'000'000'000,
             .clock_hz = kHz,
             .event = "cycles",
             .traced = traced_,
             .period = kPeriod},
            Gather(samples, results, NameOf, dictionary)};
  }

 private:
  bool traced_;
  NumberedFunctions functions_;
  std::vector<std::unique_ptr<Profile>> profiles_;
  correlate::FanOutObserver observers_{{}};
};

using Key = std::tuple<std::string, uint32_t, Mode, std::string, std::string, std::string>;

// The rows by what they are of.
template <typename DomainName, typename ExitName>
std::map<Key, ProfileRow> ByKey(const std::vector<ProfileRow>& rows, DomainName domain,
                                ExitName exit) {
  std::map<Key, ProfileRow> by_key;
  for (const ProfileRow& row : rows) {
    const bool is_exit = row.exit.kind == correlate::ContextKind::kExit;
    by_key[{domain(row.domain), row.vcpu.value, row.mode,
            is_exit ? exit(row.exit.reason)
                    : fmt::format("{}{}", static_cast<int>(row.exit.kind), row.exit.nested),
            row.image, row.function}] = row;
  }
  return by_key;
}

void ExpectSame(const std::map<Key, ProfileRow>& expected, const std::map<Key, ProfileRow>& rows) {
  ASSERT_EQ(rows.size(), expected.size());
  for (const auto& [key, row] : rows) {
    const auto same = expected.find(key);
    ASSERT_NE(same, expected.end());
    EXPECT_NEAR(row.samples, same->second.samples, 1e-6);
    EXPECT_NEAR(row.share, same->second.share, 1e-9);
    EXPECT_NEAR(row.cycles, same->second.cycles, 1e-3);
    EXPECT_NEAR(row.variance, same->second.variance, 1e-9 * same->second.variance + 1e-18);
    EXPECT_NEAR(row.interval.low, same->second.interval.low, 1e-9);
    EXPECT_NEAR(row.interval.high, same->second.interval.high, 1e-9);
  }
}

const std::vector<std::vector<Dimension>> kBy = {
    {Dimension::kDomain},
    {Dimension::kDomain, Dimension::kVcpu},
    {Dimension::kDomain, Dimension::kMode, Dimension::kFunction},
    {Dimension::kDomain, Dimension::kMode, Dimension::kImage, Dimension::kFunction},
    {Dimension::kFunction},
    {Dimension::kImage},
    {Dimension::kMode},
    {Dimension::kImage, Dimension::kMode},
    {Dimension::kExit},
    {Dimension::kHost, Dimension::kFunction},
    {Dimension::kExit, Dimension::kFunction},
    {Dimension::kDomain, Dimension::kVcpu, Dimension::kExit, Dimension::kImage}};

class MergeTest : public ::testing::TestWithParam<std::tuple<bool, size_t>> {
 protected:
  bool traced() const { return std::get<0>(GetParam()); }
  const std::vector<Dimension>& by() const { return kBy.at(std::get<1>(GetParam())); }
};

// Three slices of a host, whose timeslices do not span them, two of them joined: estimates and
// intervals are those of the recording of all three, by all columns that a store has.
TEST_P(MergeTest, SlicesAreTheWholeRecording) {
  NumberedFunctions functions;
  Profile whole({.by = by(), .period = kPeriod}, functions);
  auto merger = Merger::By(by());
  ASSERT_TRUE(merger.ok()) << merger.status();
  Dictionary dictionary;
  SimulatedHost host(7);
  SliceJoiner joiner;  // of the last two slices
  for (int number = 0; number < 3; ++number) {
    Recording recording(traced());
    recording.AlsoTo(whole);
    host.Run(recording.observer(), 150, traced());
    const Slice slice = recording.TakeSlice("a", dictionary);
    if (number > 0) {
      joiner.Add(slice);
    } else {
      ASSERT_TRUE(merger->Add(slice, dictionary).ok());
    }
  }
  ASSERT_TRUE(merger->Add(joiner.Take(), dictionary).ok());
  const auto merged = merger->Finish();
  ASSERT_TRUE(merged.ok()) << merged.status();
  const auto expected = whole.Finish();
  ASSERT_TRUE(expected.ok()) << expected.status();
  EXPECT_NEAR(merged->result.cycles, expected->cycles, 1e-3);
  const auto domain = [&](DomainId id) { return merged->domains.at(id.value); };
  const auto exit = [&](uint32_t reason) { return merged->exits.at(reason); };
  const auto known_exit = [](uint32_t reason) {
    return trace::ExitName(trace::Vendor::kUnknown, /*nested=*/false, reason);
  };
  const bool by_domain = std::ranges::find(by(), Dimension::kDomain) != by().end();
  const auto no_domain = [](DomainId) { return std::string(); };
  if (by_domain) {
    ExpectSame(ByKey(expected->rows, NameOf, known_exit), ByKey(merged->result.rows, domain, exit));
  } else {
    ExpectSame(ByKey(expected->rows, no_domain, known_exit),
               ByKey(merged->result.rows, no_domain, exit));
  }
  ExpectSame(ByKey(expected->domains, NameOf, known_exit),
             ByKey(merged->result.domains, domain, exit));
}

INSTANTIATE_TEST_SUITE_P(, MergeTest,
                         ::testing::Combine(::testing::Bool(),
                                            ::testing::Range(size_t{0}, kBy.size())));

// Subtotals of slices are the profiles by the columns of their level.
class SubtotalsTest : public ::testing::TestWithParam<std::tuple<bool, std::vector<Dimension>>> {};

TEST_P(SubtotalsTest, AreProfilesByFewerColumns) {
  const auto& [traced, by] = GetParam();
  auto merger = Merger::By(by);
  auto subtotals = SubtotalMerger::Of(by, {}, 0);
  ASSERT_TRUE(merger.ok() && subtotals.ok());
  std::vector<Merger> apart;
  for (size_t columns = 2; columns < by.size(); ++columns) {
    apart.push_back(*Merger::By({by.begin(), by.begin() + static_cast<ptrdiff_t>(columns)}));
  }
  Dictionary dictionary;
  SimulatedHost host(7);
  for (int number = 0; number < 2; ++number) {
    Recording recording(traced);
    host.Run(recording.observer(), 150, traced);
    const Slice slice = recording.TakeSlice("a", dictionary);
    ASSERT_TRUE(merger->Add(slice, dictionary).ok());
    ASSERT_TRUE(subtotals->Add(slice, dictionary).ok());
    for (Merger& each : apart) ASSERT_TRUE(each.Add(slice, dictionary).ok());
  }
  auto merged = merger->Finish();
  ASSERT_TRUE(merged.ok()) << merged.status();
  const auto are_upper_bounds = subtotals->Finish({}, merged->result);
  ASSERT_TRUE(are_upper_bounds.ok()) << are_upper_bounds.status();
  EXPECT_FALSE(*are_upper_bounds);
  ASSERT_EQ(merged->result.subtotals.size(), apart.size());
  for (size_t level = 0; level < apart.size(); ++level) {
    const auto expected = apart[level].Finish();
    ASSERT_TRUE(expected.ok());
    const auto domain = [&](DomainId id) { return merged->domains.at(id.value); };
    const auto exit = [&](uint32_t reason) { return merged->exits.at(reason); };
    ExpectSame(ByKey(expected->result.rows, domain, exit),
               ByKey(merged->result.subtotals[level], domain, exit));
  }
}

INSTANTIATE_TEST_SUITE_P(
    , SubtotalsTest,
    ::testing::Combine(
        ::testing::Bool(),
        ::testing::Values(std::vector{Dimension::kDomain, Dimension::kMode, Dimension::kFunction},
                          std::vector{Dimension::kDomain, Dimension::kExit, Dimension::kFunction},
                          std::vector{Dimension::kDomain, Dimension::kMode, Dimension::kImage,
                                      Dimension::kFunction},
                          std::vector{Dimension::kDomain, Dimension::kVcpu, Dimension::kExit,
                                      Dimension::kImage})));

// Of one chosen function the subtotals are exact; those of several have intervals that are at least
// as wide as those of a profile in which these functions are one.
TEST(MergedSubtotals, AreOfChosenRows) {
  const std::vector<Dimension> by = {Dimension::kDomain, Dimension::kMode, Dimension::kFunction};
  for (const std::vector<std::string>& functions :
       {std::vector<std::string>{"f1"}, std::vector<std::string>{"f1", "f2", "f3"}}) {
    const auto is_chosen = [&functions](const ProfileRow& row) {
      return std::ranges::find(functions, row.function) != functions.end();
    };
    NumberedFunctions resolver;
    Profile whole({.by = by,
                   .period = kPeriod,
                   .subtotals = true,
                   .choice = {.is_chosen = is_chosen, .by = {Dimension::kFunction}}},
                  resolver);
    auto merger = Merger::By(by);
    auto subtotals = SubtotalMerger::Of(by, {Dimension::kFunction}, 0);
    ASSERT_TRUE(merger.ok() && subtotals.ok());
    Dictionary dictionary;
    SimulatedHost host(7);
    Recording recording(/*traced=*/true);
    recording.AlsoTo(whole);
    host.Run(recording.observer(), 300, /*traced=*/true);
    const Slice slice = recording.TakeSlice("a", dictionary);
    ASSERT_TRUE(merger->Add(slice, dictionary).ok());
    ASSERT_TRUE(subtotals->Add(slice, dictionary).ok());
    auto merged = merger->Finish();
    ASSERT_TRUE(merged.ok()) << merged.status();
    correlate::ProfileResult& result = merged->result;
    const auto are_upper_bounds =
        subtotals->Finish({.is_chosen = is_chosen, .by = {Dimension::kFunction}}, result);
    ASSERT_TRUE(are_upper_bounds.ok()) << are_upper_bounds.status();
    EXPECT_EQ(*are_upper_bounds, functions.size() > 1);
    std::erase_if(result.rows, [&](const ProfileRow& row) { return !is_chosen(row); });
    EXPECT_TRUE(correlate::CheckLevels(result.chosen_subtotals, result.rows).ok());
    const auto expected = whole.Finish();
    ASSERT_TRUE(expected.ok());
    ASSERT_EQ(result.chosen_subtotals.size(), 2U);
    for (size_t level = 0; level < 2; ++level) {
      const auto name = [&](const ProfileRow& row, const std::string& domain) {
        return std::pair(domain, level == 0 ? Mode::kUser : row.mode);
      };
      std::map<std::pair<std::string, Mode>, ProfileRow> rows;
      for (const ProfileRow& row : expected->chosen_subtotals[level]) {
        rows[name(row, NameOf(row.domain))] = row;
      }
      ASSERT_EQ(result.chosen_subtotals[level].size(), rows.size());
      for (const ProfileRow& row : result.chosen_subtotals[level]) {
        const ProfileRow& as = rows.at(name(row, merged->domains.at(row.domain.value)));
        EXPECT_NEAR(row.samples, as.samples, 1e-6);
        EXPECT_NEAR(row.share, as.share, 1e-9);
        EXPECT_GE(row.variance, as.variance * (1 - 1e-9));
        if (*are_upper_bounds) continue;
        EXPECT_NEAR(row.variance, as.variance, 1e-9 * as.variance);
      }
    }
  }
}

// Hosts of a fleet differ. Their functions' shares of the time of all of them are in the intervals
// in 93 to 97 % of all cases, with traces and without.
TEST(MergedFleet, IntervalsHold) {
  for (const bool traced : {true, false}) {
    size_t covered = 0;
    size_t rows = 0;
    for (uint64_t fleet = 0; fleet < 60; ++fleet) {
      auto merger = Merger::By({Dimension::kFunction});
      ASSERT_TRUE(merger.ok());
      Dictionary dictionary;
      std::map<std::string, double> truth;
      constexpr uint64_t kHosts = 5;
      for (uint64_t number = 0; number < kHosts; ++number) {
        SimulatedHost host(1000 * fleet + number);
        for (int slice = 0; slice < 2; ++slice) {
          Recording recording(traced);
          host.Run(recording.observer(), 40, traced);
          const Slice taken = recording.TakeSlice(std::to_string(number), dictionary);
          ASSERT_TRUE(merger->Add(taken, dictionary).ok());
        }
        for (size_t f = 0; f < SimulatedHost::kFunctions; ++f) {
          truth[fmt::format("f{}", f % 9)] += host.ShareOf(f) / kHosts;
        }
      }
      const auto merged = merger->Finish();
      ASSERT_TRUE(merged.ok()) << merged.status();
      for (const ProfileRow& row : merged->result.rows) {
        const double share = truth.at(row.function);
        ++rows;
        covered += static_cast<size_t>(row.interval.low <= share && share <= row.interval.high);
      }
    }
    const double part = static_cast<double>(covered) / static_cast<double>(rows);
    RecordProperty(traced ? "traced" : "untraced", std::to_string(part));
    EXPECT_GE(part, 0.93) << traced;
    EXPECT_LE(part, 0.97) << traced;
  }
}

// A host whose clock is twice as fast has not spent twice the time.
TEST(MergedFleet, SharesAreOfTime) {
  Dictionary dictionary;
  auto merger = Merger::By({Dimension::kDomain, Dimension::kVcpu});
  ASSERT_TRUE(merger.ok());
  for (const uint64_t factor : {1, 2}) {
    Slice slice{{.host = std::to_string(factor),
                 .begin_ns = 0,
                 .end_ns = 1'000'000'000,
                 .clock_hz = factor * kHz,
                 .event = "cycles"},
                {}};
    const VcpuNumber vcpu = dictionary.vcpus.Intern({"web", static_cast<uint32_t>(factor)});
    const ContextNumber running =
        dictionary.contexts.Intern({correlate::ContextKind::kRunning, "", false});
    slice.sums.strata.push_back(
        {vcpu, running, 1000.0 * static_cast<double>(factor), 0, {50, 100, 25}});
    ASSERT_TRUE(merger->Add(slice, dictionary).ok());
  }
  const auto merged = merger->Finish();
  ASSERT_TRUE(merged.ok()) << merged.status();
  ASSERT_EQ(merged->result.rows.size(), 2);
  EXPECT_DOUBLE_EQ(merged->result.rows[0].share, 0.5);
  EXPECT_DOUBLE_EQ(merged->result.cycles, 2000);
}

// Rows by host add up to those of all hosts, and have the samples of their host.
TEST(MergedFleet, RowsByHostAddUp) {
  Dictionary dictionary;
  auto by_host = Merger::By({Dimension::kHost, Dimension::kFunction});
  auto together = Merger::By({Dimension::kFunction});
  std::map<std::string, double> samples;
  for (const char* const name : {"a", "b"}) {
    Recording recording(/*traced=*/true);
    SimulatedHost host(name[0]);
    host.Run(recording.observer(), 60, /*traced=*/true);
    const Slice slice = recording.TakeSlice(name, dictionary);
    for (const StratumSums& stratum : slice.sums.strata) samples[name] += stratum.totals.n;
    ASSERT_TRUE(by_host->Add(slice, dictionary).ok());
    ASSERT_TRUE(together->Add(slice, dictionary).ok());
  }
  const auto apart = by_host->Finish();
  const auto all = together->Finish();
  ASSERT_TRUE(apart.ok() && all.ok());
  std::map<std::string, double> cycles;
  for (const ProfileRow& row : apart->result.rows) {
    cycles[row.function] += row.cycles;
    samples[row.host] -= row.samples;
  }
  ASSERT_EQ(samples.size(), 2U);
  for (const auto& [host, left] : samples) EXPECT_NEAR(left, 0, 1e-6) << host;
  ASSERT_EQ(cycles.size(), all->result.rows.size());
  for (const ProfileRow& row : all->result.rows) {
    EXPECT_NEAR(cycles.at(row.function), row.cycles, 1e-3) << row.function;
  }
}

// Rows and shares are the same in whatever order a store has names and sums.
TEST(MergedFleet, RowsAreInTheOrderOfTheirNames) {
  const auto take = [](Dictionary& dictionary) {
    Recording recording(/*traced=*/true);
    SimulatedHost host(1);
    host.Run(recording.observer(), 60, /*traced=*/true);
    return recording.TakeSlice("a", dictionary);
  };
  const auto rows_of = [](const Slice& slice, const Dictionary& dictionary) {
    auto merger = Merger::By({Dimension::kDomain, Dimension::kExit, Dimension::kFunction});
    EXPECT_TRUE(merger->Add(slice, dictionary).ok());
    const auto merged = merger->Finish();
    EXPECT_TRUE(merged.ok());
    std::vector<std::string> rows;
    for (const ProfileRow& row : merged->result.rows) {
      const bool is_exit = row.exit.kind == correlate::ContextKind::kExit;
      rows.push_back(fmt::format(
          "{} {} {}{} {} {:a}", merged->domains[row.domain.value], static_cast<int>(row.exit.kind),
          row.exit.nested, is_exit ? merged->exits[row.exit.reason] : "", row.function, row.share));
    }
    return rows;
  };
  Dictionary dictionary;
  const Slice slice = take(dictionary);
  const std::vector<std::string> rows = rows_of(slice, dictionary);
  EXPECT_TRUE(std::ranges::is_sorted(rows));
  Dictionary reversed;
  for (size_t i = dictionary.codes.all().size(); i-- > 0;) {
    reversed.codes.Intern(dictionary.codes.all()[i]);
  }
  for (size_t i = dictionary.contexts.all().size(); i-- > 0;) {
    reversed.contexts.Intern(dictionary.contexts.all()[i]);
  }
  Slice other = take(reversed);
  std::ranges::reverse(other.sums.strata);
  std::ranges::reverse(other.sums.parts);
  EXPECT_EQ(rows_of(other, reversed), rows);
}

TEST(Merger, TakesNoOtherColumns) {
  EXPECT_TRUE(absl::IsInvalidArgument(Merger::By({Dimension::kStack}).status()));
}

TEST(Merger, NeedsASlice) {
  auto merger = Merger::By({Dimension::kDomain});
  ASSERT_TRUE(merger.ok());
  EXPECT_TRUE(absl::IsNotFound(merger->Finish().status()));
}

}  // namespace
}  // namespace xenoscope::store
