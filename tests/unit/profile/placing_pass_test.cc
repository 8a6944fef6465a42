// A pass that places samples: the records that nobody wants, and the order of those of different
// pCPUs, change nothing.
#include "profile/placing_pass.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "tests/unit/analysis/random_trace.h"
#include "trace/trace_file.h"

namespace xenoscope::profile {
namespace {

using correlate::Context;
using correlate::PlacedSample;
using correlate::Placer;
using correlate::PlacingOptions;
using correlate::SampleSource;
using recording::Sample;
using trace::RecordOrder;

class Samples final : public SampleSource {
 public:
  explicit Samples(std::vector<Sample> samples) : samples_(std::move(samples)) {}
  const Sample* Next() override { return next_ == samples_.size() ? nullptr : &samples_[next_++]; }

 private:
  std::vector<Sample> samples_;
  size_t next_ = 0;
};

// What an observer is given: a line a sample, in their order, and the sums of traced time.
struct Seen final : correlate::PlacingObserver {
  static std::string Text(const Context& context) {
    return fmt::format("{}/{}/{}/{}", static_cast<int>(context.kind), context.reason,
                       context.number, context.wakeup);
  }
  void OnPlaced(const PlacedSample& placed) override {
    const std::string sample =
        fmt::format("{} at {}", ToString(placed.vcpu), placed.sample->when.end.value);
    const std::string& cluster = clusters.try_emplace(placed.cluster, sample).first->second;
    std::string line = fmt::format("{}, cluster of {}:", sample, cluster);
    for (const correlate::Place& place : placed.places) {
      line += fmt::format(" {} p{} {}", Text(place.context), place.pcpu.value, place.weight);
    }
    lines.push_back(std::move(line));
  }
  void OnUnplaced(const Sample& sample, correlate::UnplacedReason why) override {
    lines.push_back(
        fmt::format("{} at {}: {}", ToString(sample.vcpu), sample.when.end.value, ToString(why)));
  }
  void OnTraced(VcpuRef vcpu, Context context, correlate::ContextTime time) override {
    traced[fmt::format("{} {}", ToString(vcpu), Text(context))] += time.cycles;
  }
  std::vector<std::string> lines;
  std::map<std::string, uint64_t> traced;
  // Their first samples: which numbers they have depends on the order of records.
  std::map<uint64_t, std::string> clusters;
};

// Returns the lines that are in one of them only: samples of different pCPUs come in any order.
std::vector<std::string> Unshared(std::vector<std::string> seen,
                                  std::vector<std::string> expected) {
  std::ranges::sort(seen);
  std::ranges::sort(expected);
  std::vector<std::string> unshared;
  std::ranges::set_symmetric_difference(seen, expected, std::back_inserter(unshared));
  return unshared;
}

// Samples with brackets of many lengths, and instants.
std::vector<Sample> RandomSamples(uint32_t seed, uint64_t last) {
  std::mt19937 random(seed);
  const auto below = [&random](uint64_t limit) {
    return std::uniform_int_distribution<uint64_t>(0, limit - 1)(random);
  };
  std::vector<Sample> samples;
  for (int drain = 0; drain < 60; ++drain) {
    Sample sample;
    sample.vcpu = {DomainId{static_cast<uint16_t>(1 + below(3))},
                   VcpuId{static_cast<uint32_t>(below(2))}};
    sample.mode = below(2) == 0 ? Mode::kKernel : Mode::kXen;
    const uint64_t end = 1000 + below(last);
    sample.when = {Tsc{end - 1 - (below(3) == 0 ? 0 : below(900))}, Tsc{end}};
    samples.insert(samples.end(), 1 + below(4), sample);
  }
  std::ranges::stable_sort(samples, {}, [](const Sample& sample) { return sample.when.end; });
  return samples;
}

PlacingOptions Options(RecordOrder order, bool by_subreason) {
  PlacingOptions options;
  options.sampled = {Tsc{0}, trace::OrderedStream::kEnd};
  options.longest_bracket = 1000;
  options.vendor = trace::Vendor::kVmx;
  options.order = order;
  options.by_wakeup = true;
  options.by_subreason = by_subreason;
  options.settle_again = 50;
  return options;
}

Seen PlaceItemByItem(const trace::TraceFile& file, std::vector<Sample> drawn) {
  Seen seen;
  Samples samples(std::move(drawn));
  Placer placer(Options(RecordOrder::kTime, false), samples, seen);
  trace::OrderedStream stream = file.Stream();
  while (const trace::Item* item = stream.Next()) placer.Take(*item);
  EXPECT_TRUE(placer.Finish().ok());
  return seen;
}

Seen PlaceByPass(const trace::TraceFile& file, SampleSource& samples, RecordOrder order,
                 correlate::ExitSamples* of_trace = nullptr, bool by_subreason = false) {
  Seen seen;
  PlacingOptions options = Options(order, by_subreason);
  options.of_trace = of_trace != nullptr;
  Placer placer(options, samples, seen);
  // All stretches are long enough to be divided.
  PlacingPass pass({.placer = placer, .samples = of_trace}, order, Cycles{1});
  EXPECT_TRUE(pass.Run(file).ok());
  EXPECT_TRUE(placer.Finish().ok());
  return seen;
}

TEST(PlacingPass, PlacesAsIfItTookEveryItemInOrder) {
  size_t placed = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const analysis::RandomTrace random(seed);
    const auto file = trace::TraceFile::FromBytes(random.trace().bytes(), "test");
    ASSERT_TRUE(file.ok()) << file.status();
    const std::vector<Sample> drawn = RandomSamples(seed, 24'000);
    const Seen expected = PlaceItemByItem(*file, drawn);
    for (const RecordOrder order :
         {RecordOrder::kTime, RecordOrder::kCrossing, RecordOrder::kGroups}) {
      Samples samples(drawn);
      const Seen seen = PlaceByPass(*file, samples, order);
      EXPECT_EQ(seen.lines, expected.lines) << "seed " << seed;
      EXPECT_EQ(seen.traced, expected.traced) << "seed " << seed;
    }
    placed += expected.lines.size();
  }
  EXPECT_GT(placed, 10'000U);
}

// A sample may wait for what an exit was about. When it is looked at again does not depend on the
// order.
TEST(PlacingPass, SettlesExitsInEachOrder) {
  size_t with_subreason = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const analysis::RandomTrace random(seed);
    const auto file = trace::TraceFile::FromBytes(random.trace().bytes(), "test");
    ASSERT_TRUE(file.ok()) << file.status();
    const std::vector<Sample> drawn = RandomSamples(seed, 24'000);
    Samples in_time(drawn);
    const Seen expected = PlaceByPass(*file, in_time, RecordOrder::kTime, nullptr, true);
    for (const RecordOrder order : {RecordOrder::kCrossing, RecordOrder::kGroups}) {
      Samples samples(drawn);
      const Seen seen = PlaceByPass(*file, samples, order, nullptr, true);
      EXPECT_EQ(seen.lines, expected.lines) << "seed " << seed;
      EXPECT_EQ(seen.traced, expected.traced) << "seed " << seed;
    }
    Samples again(drawn);
    const Seen without = PlaceByPass(*file, again, RecordOrder::kTime);
    with_subreason += without.lines == expected.lines ? 0 : 1;
  }
  EXPECT_GT(with_subreason, 50U);  // recordings
}

// What begins after the time that is wanted changes nothing, so that it is not read.
TEST(PlacingPass, StopsAfterTheTimeThatIsWanted) {
  static constexpr Tsc kEnd{9000};
  size_t stopped = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const analysis::RandomTrace random(seed);
    const auto file = trace::TraceFile::FromBytes(random.trace().bytes(), "test");
    ASSERT_TRUE(file.ok()) << file.status();
    std::vector<Sample> drawn = RandomSamples(seed, 24'000);
    std::erase_if(drawn, [](const Sample& sample) { return sample.when.end > kEnd; });
    const auto place = [&](Tsc end) {
      Seen seen;
      Samples samples(drawn);
      PlacingOptions options = Options(RecordOrder::kCrossing, true);
      options.sampled.end = kEnd;
      Placer placer(options, samples, seen);
      PlacingPass pass({.placer = placer}, options.order, Cycles{1});
      EXPECT_TRUE(pass.Run(*file, end).ok());
      EXPECT_TRUE(placer.Finish().ok());
      EXPECT_GE(pass.unread_from().value_or(kEnd), kEnd);
      stopped += pass.unread_from() ? 1 : 0;
      return seen;
    };
    const Seen expected = place(trace::OrderedStream::kEnd);
    const Seen seen = place(kEnd);
    EXPECT_EQ(seen.lines, expected.lines) << "seed " << seed;
    EXPECT_EQ(seen.traced, expected.traced) << "seed " << seed;
  }
  EXPECT_GT(stopped, 50U);
}

TEST(PlacingPass, PlacesSamplesOfTheTraceThatItTakes) {
  size_t placed = 0;
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const analysis::RandomTrace random(seed);
    const auto file = trace::TraceFile::FromBytes(random.trace().bytes(), "test");
    ASSERT_TRUE(file.ok()) << file.status();
    correlate::ExitSampleReader reader(*file, trace::Vendor::kVmx);
    std::vector<Sample> read;
    while (const Sample* sample = reader.Next()) read.push_back(*sample);
    const Seen expected = PlaceItemByItem(*file, read);
    for (const RecordOrder order :
         {RecordOrder::kTime, RecordOrder::kCrossing, RecordOrder::kGroups}) {
      correlate::ExitSamples samples(trace::Vendor::kVmx);
      const Seen seen = PlaceByPass(*file, samples, order, &samples);
      EXPECT_EQ(Unshared(seen.lines, expected.lines), std::vector<std::string>())
          << "seed " << seed;
      EXPECT_EQ(seen.traced, expected.traced) << "seed " << seed;
    }
    placed += expected.lines.size();
  }
  EXPECT_GT(placed, 1'000U);
}

}  // namespace
}  // namespace xenoscope::profile
