// Ranges of the TSC for perf's times: never narrower than what is known, and never without the
// truth.
#include "sampler/perf/perf_clock.h"

#include <gtest/gtest.h>

#include <random>

namespace xenoscope::sampler {
namespace {

constexpr Tsc kNow{1'000'000'000'000};

TEST(PerfClockTest, UnboundedWithoutPairs) {
  const PerfClock clock;
  EXPECT_EQ(clock.At(5, Tsc{900}), (TscRange{Tsc{0}, Tsc{901}}));
  EXPECT_EQ(clock.PairedUntil(), 0);
  EXPECT_EQ(clock.Hz(), 0);
}

TEST(PerfClockTest, OnePairIsABound) {
  PerfClock clock;
  clock.AddPair(100, {Tsc{1000}, Tsc{1010}});
  EXPECT_EQ(clock.At(99, kNow), (TscRange{Tsc{0}, Tsc{1011}}));
  EXPECT_EQ(clock.At(101, Tsc{1200}), (TscRange{Tsc{1000}, Tsc{1201}}));
}

TEST(PerfClockTest, InterpolatesBetweenPairs) {
  PerfClock clock;
  clock.AddPair(100, {Tsc{1000}, Tsc{1010}});
  clock.AddPair(200, {Tsc{1200}, Tsc{1220}});
  EXPECT_EQ(clock.At(150, kNow), (TscRange{Tsc{1100}, Tsc{1116}}));
  EXPECT_EQ(clock.At(100, kNow), (TscRange{Tsc{1000}, Tsc{1011}}));
  EXPECT_EQ(clock.At(200, kNow), (TscRange{Tsc{1200}, Tsc{1221}}));
  EXPECT_EQ(clock.PairedUntil(), 200);
  EXPECT_EQ(clock.Hz(), 2'000'000'000);
}

TEST(PerfClockTest, AllowsDriftFarFromPairs) {
  PerfClock clock;
  clock.AddPair(0, {Tsc{0}, Tsc{10}});
  clock.AddPair(2'000'000'000, {Tsc{2'000'000'000}, Tsc{2'000'000'010}});
  const TscRange middle = clock.At(1'000'000'000, kNow);
  EXPECT_EQ(middle.begin, Tsc{1'000'000'000 - 30'000});
  EXPECT_EQ(middle.end, Tsc{1'000'000'011 + 30'000});
}

// With a TSC of 2.6 GHz and pairs at random, each of a random width, the truth is always inside.
TEST(PerfClockTest, BracketContainsTrueInstant) {
  std::mt19937_64 random(5);
  const auto truth = [](uint64_t time) { return 7'000'000 + time * 26 / 10; };
  PerfClock clock;
  uint64_t time = 1000;
  clock.AddPair(time, {Tsc{truth(time) - 40}, Tsc{truth(time) + 900}});
  for (int i = 0; i < 1000; ++i) {
    const uint64_t from = time;
    time += 1 + random() % 10'000'000;
    clock.AddPair(time, {Tsc{truth(time) - random() % 2000}, Tsc{truth(time) + random() % 2000}});
    const uint64_t at = from + random() % (time - from + 1);
    const TscRange found = clock.At(at, kNow);
    ASSERT_TRUE(found.Contains(Tsc{truth(at)})) << i;
    ASSERT_LT(found.Length(), 7000) << i;
  }
}

TEST(PerfClockTest, IgnoresPairsThatDoNotAdvance) {
  PerfClock clock;
  clock.AddPair(100, {Tsc{1000}, Tsc{1010}});
  clock.AddPair(100, {Tsc{2000}, Tsc{2010}});
  EXPECT_EQ(clock.At(101, Tsc{3000}).begin, Tsc{1000});
}

// Returns the page of a ring: half a cycle a nanosecond, from 1000 ns on.
perf_event_mmap_page Page() {
  perf_event_mmap_page page{};
  page.cap_user_time_zero = 1;
  page.time_zero = 1000;
  page.time_mult = 1U << 17;
  page.time_shift = 16;
  return page;
}

TEST(PerfClockTest, MmapPageGivesInstants) {
  PerfClock clock;
  const auto page = Page();
  clock.SetConversion(page);
  clock.AddPair(3000, {Tsc{900}, Tsc{1100}});
  EXPECT_TRUE(clock.IsExact());
  EXPECT_EQ(clock.At(2000, kNow), (TscRange{Tsc{500}, Tsc{501}}));
}

TEST(PerfClockTest, IgnoresMmapPageDuringUpdate) {
  PerfClock clock;
  auto page = Page();
  page.lock = 3;
  clock.SetConversion(page);
  clock.AddPair(3000, {Tsc{900}, Tsc{1100}});
  EXPECT_FALSE(clock.IsExact());
}

TEST(PerfClockTest, IgnoresMmapPageThatContradictsPairs) {
  PerfClock clock;
  clock.SetConversion(Page());
  clock.AddPair(3000, {Tsc{900'000}, Tsc{901'000}});
  EXPECT_FALSE(clock.IsExact());
  clock.AddPair(4000, {Tsc{902'000}, Tsc{903'000}});
  EXPECT_FALSE(clock.At(3500, kNow).Length() == 1);
}

}  // namespace
}  // namespace xenoscope::sampler
