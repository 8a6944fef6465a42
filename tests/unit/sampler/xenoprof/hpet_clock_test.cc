// The HPET as a clock, with simulated registers that behave as QEMU's.
#include "sampler/xenoprof/hpet_clock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <map>
#include <string>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

using ::testing::HasSubstr;

// The registers of an HPET of 100 MHz with three timers. The test owns them and sees them through a
// Window.
struct FakeHpet {
  std::map<uint32_t, uint32_t> registers{
      {0x000, 0x8086a201}, {0x004, 10'000'000}, {0x010, 1}, {0x0f0, 1000}};
  std::map<uint32_t, uint32_t> first;   // comparator of a timer, as written with VAL_SET
  std::map<uint32_t, uint32_t> period;  // the second write
  std::function<void()> on_comparator;

  void Write(uint32_t offset, uint32_t value) {
    const uint32_t timer = (offset - 0x100) / 0x20;
    uint32_t& configuration = registers[0x100 + 0x20 * timer];
    if (offset >= 0x100 && offset % 0x20 == 8) {
      if (on_comparator) on_comparator();
      ((configuration & 1U << 6) != 0 ? first : period)[timer] = value;
      configuration &= ~(1U << 6);
      return;
    }
    registers[offset] = value;
  }
};

class FakeHpetRegisters final : public HpetRegisters {
 public:
  explicit FakeHpetRegisters(FakeHpet& hpet) : hpet_(hpet) {}
  uint32_t Read(uint32_t offset) override { return hpet_.registers[offset]; }
  void Write(uint32_t offset, uint32_t value) override { hpet_.Write(offset, value); }

 private:
  FakeHpet& hpet_;
};

constexpr uint32_t kSendsNmis = 1U << 2 | 1U << 3 | 1U << 8 | 1U << 14;
const std::array<uint32_t, 2> kTwo{0, 5};

TEST(HpetClockTest, EachCpuHasATimer) {
  FakeHpet hpet;
  auto clock = HpetClock::Create(std::make_unique<FakeHpetRegisters>(hpet), 500, kTwo);
  ASSERT_TRUE(clock.ok()) << clock.status();
  ASSERT_TRUE((*clock)->Start().ok());
  EXPECT_EQ(hpet.registers[0x120], kSendsNmis);
  EXPECT_EQ(hpet.registers[0x130], 0x400);
  EXPECT_EQ(hpet.registers[0x134], 0xfee00000);
  EXPECT_EQ(hpet.registers[0x154], 0xfee05000);
  EXPECT_EQ(hpet.first[1], 1000 + 200'000);
  EXPECT_EQ(hpet.period[1], 200'000);
  EXPECT_EQ(hpet.registers[0x100], 0) << "timer 0 is others'";
}

TEST(HpetClockTest, CountsNmisAcrossWrapOfCounter) {
  FakeHpet hpet;
  hpet.registers[0x0f0] = 0xffff'ff00;
  auto clock = HpetClock::Create(std::make_unique<FakeHpetRegisters>(hpet), 500, kTwo);
  ASSERT_TRUE((*clock)->Start().ok());
  EXPECT_EQ((*clock)->Sent(), 0U);
  hpet.registers[0x0f0] = 0xffff'ff00 + 5 * 200'000 + 10;
  hpet.registers[0x0f4] = 1;
  (*clock)->Stop();
  EXPECT_EQ((*clock)->Sent(), 2 * 5U);
}

TEST(HpetClockTest, RestartsTimerThatFiredEarly) {
  FakeHpet hpet;
  int writes = 0;
  hpet.on_comparator = [&] {
    if (++writes <= 2) hpet.registers[0x0f0] += 150'000;  // preempted twice
  };
  auto clock =
      HpetClock::Create(std::make_unique<FakeHpetRegisters>(hpet), 500, std::array<uint32_t, 1>{0});
  ASSERT_TRUE((*clock)->Start().ok());
  EXPECT_EQ(writes, 4);
  EXPECT_EQ(hpet.first[1], 1000 + 300'000 + 400'000);
  EXPECT_EQ(hpet.period[1], 200'000);
  hpet.registers[0x0f0] = 1000 + 300'000 + 400'000;
  (*clock)->Stop();
  EXPECT_EQ((*clock)->Sent(), 1U);
}

TEST(HpetClockTest, TimerThatDoesNotStartIsAnError) {
  FakeHpet hpet;
  uint32_t step = 200'000;
  hpet.on_comparator = [&] { hpet.registers[0x0f0] += step *= 2; };
  auto clock =
      HpetClock::Create(std::make_unique<FakeHpetRegisters>(hpet), 500, std::array<uint32_t, 1>{0});
  EXPECT_THAT(std::string(Message((*clock)->Start())), HasSubstr("too busy"));
}

TEST(HpetClockTest, StopEndsNmis) {
  FakeHpet hpet;
  auto clock = HpetClock::Create(std::make_unique<FakeHpetRegisters>(hpet), 500, kTwo);
  ASSERT_TRUE((*clock)->Start().ok());
  (*clock)->Stop();
  EXPECT_EQ(hpet.registers[0x120] & 1U << 2, 0);
  EXPECT_EQ(hpet.registers[0x140] & 1U << 2, 0);
}

TEST(HpetClockTest, StopsTimersOfKilledRecorderOnly) {
  FakeHpet hpet;
  hpet.registers[0x120] = kSendsNmis;
  hpet.registers[0x130] = 0x400;
  hpet.registers[0x140] = 1U << 2;  // in use by another, without messages
  FakeHpetRegisters window(hpet);
  HpetClock::StopStaleTimers(window);
  EXPECT_EQ(hpet.registers[0x120] & 1U << 2, 0);
  EXPECT_EQ(hpet.registers[0x140], 1U << 2);
}

std::string Refusal(FakeHpet& hpet, uint32_t hz, std::span<const uint32_t> apic_ids) {
  return std::string(
      Message(HpetClock::Create(std::make_unique<FakeHpetRegisters>(hpet), hz, apic_ids).status()));
}

TEST(HpetClockTest, ErrorsHaveARemedy) {
  FakeHpet hpet;
  const std::array<uint32_t, 3> three{0, 1, 2};
  EXPECT_THAT(Refusal(hpet, 500, three), HasSubstr("2 timers beside its first"));
  EXPECT_THAT(Refusal(hpet, 0, kTwo), HasSubstr("1 to 100000 Hz"));
  EXPECT_THAT(Refusal(hpet, 200'000, kTwo), HasSubstr("1 to 100000 Hz"));
  EXPECT_THAT(Refusal(hpet, 500, std::array<uint32_t, 1>{256}), HasSubstr("APIC id 256"));
  hpet.registers[0x120] = 1U << 2;
  EXPECT_THAT(Refusal(hpet, 500, kTwo), HasSubstr("cpuidle=off"));
  hpet.registers[0x010] = 0;
  EXPECT_THAT(Refusal(hpet, 500, kTwo), HasSubstr("clocksource=hpet"));
  hpet.registers[0x004] = 0xffffffff;
  EXPECT_THAT(Refusal(hpet, 500, kTwo), HasSubstr("no HPET"));
}

}  // namespace
}  // namespace xenoscope::sampler
