// Ranges of the host's time for a guest's TSC, compared with guests whose clock is known.
#include "sampler/agent/guest_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <tuple>

namespace xenoscope::sampler {
namespace {

TscRange Range(uint64_t begin, uint64_t end) { return {Tsc{begin}, Tsc{end}}; }

TEST(GuestClock, UnknownBeforeFirstAnswer) {
  const GuestClock clock(true);
  EXPECT_EQ(clock.ToHost(5), std::nullopt);
  EXPECT_EQ(clock.Error(), std::nullopt);
}

TEST(GuestClock, OneAnswerBoundsTheOffset) {
  GuestClock clock(true);
  clock.Add(Tsc{1000}, 50, Tsc{1010});  // the guest is behind by 950 to 960
  EXPECT_EQ(clock.ToHost(50), Range(1000, 1011));
  EXPECT_EQ(clock.ToHost(150), Range(1100, 1111));
  EXPECT_EQ(clock.Error(), 11u);
}

TEST(GuestClock, IntersectsAnswers) {
  GuestClock clock(true);
  clock.Add(Tsc{1000}, 50, Tsc{1010});    // behind by 950 to 960
  clock.Add(Tsc{2000}, 1042, Tsc{2006});  // by 958 to 964
  EXPECT_EQ(clock.Error(), 3u);
  EXPECT_EQ(clock.ToHost(100), Range(1058, 1061));
  clock.DropOldAnswers();
  EXPECT_EQ(clock.ToHost(1100), Range(2058, 2061));
  EXPECT_EQ(clock.jumps(), 0u);
}

TEST(GuestClock, ExactOffsetGivesInstants) {
  GuestClock clock(true);
  clock.Add(Tsc{500}, 500, Tsc{500});
  clock.Add(Tsc{1000}, 1004, Tsc{1010});
  EXPECT_EQ(clock.ToHost(1003), Range(1003, 1004));
}

TEST(GuestClock, ContradictionIsAClockJump) {
  GuestClock clock(true);
  clock.Add(Tsc{1000}, 1000, Tsc{1010});
  clock.Add(Tsc{2000}, 7000, Tsc{2010});  // 5000 ahead by now
  EXPECT_EQ(clock.jumps(), 1u);
  EXPECT_EQ(clock.ToHost(1500), Range(1000, 2011));
  EXPECT_EQ(clock.ToHost(7001), Range(2001, 2012));
}

TEST(GuestClock, BackwardTimeIsAClockJump) {
  GuestClock clock(true);
  clock.Add(Tsc{1000}, 900'000, Tsc{1010});
  clock.Add(Tsc{2000}, 10, Tsc{2010});
  EXPECT_EQ(clock.jumps(), 1u);
  EXPECT_EQ(clock.ToHost(12), Range(2002, 2013));
}

TEST(GuestClock, BracketsDifferentRateByAnswers) {
  GuestClock clock(false);
  clock.Add(Tsc{1000}, 500, Tsc{1010});
  clock.Add(Tsc{2000}, 1000, Tsc{2010});
  EXPECT_EQ(clock.ToHost(700), Range(1000, 2011));
  EXPECT_EQ(clock.ToHost(1001), std::nullopt);  // until the next answer
  EXPECT_EQ(clock.Error(), std::nullopt);
  clock.DropOldAnswers();
  clock.Add(Tsc{3000}, 1500, Tsc{3010});
  EXPECT_EQ(clock.ToHost(1001), Range(2000, 3011));
  EXPECT_EQ(clock.jumps(), 0u);
}

TEST(GuestClock, KeepsAnswersForLateSamples) {
  for (const bool same_rate : {true, false}) {
    GuestClock clock(same_rate);
    for (uint64_t i = 1; i <= 100; ++i) {
      clock.Add(Tsc{i * 1000}, i * 1000, Tsc{i * 1000 + 10});
      clock.DropOldAnswers();
    }
    EXPECT_TRUE(clock.ToHost(99'500));
    EXPECT_TRUE(clock.ToHost(85'001));
    EXPECT_EQ(clock.ToHost(84'999), std::nullopt);
  }
}

TEST(GuestClock, BracketContainsTrueInstant) {
  std::mt19937_64 random(1);
  const auto up_to = [&](uint64_t limit) { return random() % limit; };
  for (const uint64_t offset : {uint64_t{0}, uint64_t{123456789}, ~uint64_t{0} - 5'000'000}) {
    GuestClock clock(true);
    uint64_t host = 10'000'000;
    for (int i = 0; i < 200; ++i) {
      const uint64_t there = up_to(5000);
      const uint64_t back = up_to(5000);
      clock.Add(Tsc{host}, host + there + offset, Tsc{host + there + back});
      host += 100'000;
      const uint64_t sampled = host - up_to(50'000);
      const auto bracket = clock.ToHost(sampled + offset);
      ASSERT_TRUE(bracket && bracket->Contains(Tsc{sampled})) << offset << " " << i;
      if (up_to(3) == 0) clock.DropOldAnswers();
    }
    EXPECT_LT(*clock.Error(), 1000u);
    EXPECT_EQ(clock.jumps(), 0u);
  }
}

TEST(GuestClock, SurvivesArbitraryAnswers) {
  std::mt19937_64 random(2);
  for (const bool same_rate : {true, false}) {
    GuestClock clock(same_rate);
    for (uint64_t i = 0; i < 2000; ++i) {
      clock.Add(Tsc{i * 100}, random(), Tsc{i * 100 + random() % 100});
      std::ignore = clock.ToHost(random());
      if (i % 7 == 0) clock.DropOldAnswers();
    }
    EXPECT_TRUE(clock.jumps() > 0 || !same_rate);
  }
}

}  // namespace
}  // namespace xenoscope::sampler
