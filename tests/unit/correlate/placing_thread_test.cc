// An observer on a thread of its own sees what it would see without.
#include "correlate/placing_thread.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace xenoscope::correlate {
namespace {

constexpr VcpuRef kVcpu{DomainId{1}, VcpuId{0}};

// What an observer is told, a line each; samples and traced time apart, since only each of the two
// has an order.
class Notes final : public PlacingObserver {
 public:
  void OnPlaced(const PlacedSample& placed) override {
    std::string line = fmt::format("{:#x} in {:#x}, run {}:", placed.sample->address,
                                   placed.address, placed.cluster);
    for (const Place& place : placed.places) {
      line += fmt::format(" {}={}", place.context.reason, place.weight);
    }
    samples.push_back(line);
  }
  void OnUnplaced(const recording::Sample& sample, UnplacedReason why) override {
    unplaced.push_back(fmt::format("{:#x} {}", sample.address, ToString(why)));
  }
  void OnTraced(VcpuRef vcpu, Context context, ContextTime time) override {
    traced.push_back(fmt::format("{} {} {}", ToString(vcpu), context.reason, time.cycles));
  }

  std::vector<std::string> samples;
  std::vector<std::string> unplaced;
  std::vector<std::string> traced;
};

// Much of everything: samples with places of their own, samples that share theirs, as those of a
// drain do, of two modes in turn.
void Notify(PlacingObserver& observer) {
  for (uint32_t i = 0; i < 300'000; ++i) {
    recording::Sample sample;
    sample.address = i;
    sample.mode = i % 2 == 0 ? Mode::kXen : Mode::kUser;
    const uint32_t drain = i / 100;
    const bool alone = i % 7 == 0;
    const uint32_t reason = alone ? i : 2 * drain + i % 2;
    const Context context{ContextKind::kExit, false, reason};
    const std::vector<Place> places = {{context, PcpuId{0}, 0.25},
                                       {{ContextKind::kGuest}, {}, 0.75}};
    observer.OnPlaced({&sample,
                       kVcpu,
                       i + 1,
                       Placement::kBracketed,
                       i / 30,  // its run: there are several in a drain
                       std::span(places).first(alone ? 1 : 2),
                       {},
                       {},
                       alone ? 0 : 1 + 2 * drain + i % 2});
    observer.OnTraced(kVcpu, context, {i});
    if (i % 3 == 0) observer.OnUnplaced(sample, UnplacedReason::kNotRunning);
  }
}

TEST(PlacingThread, DeliversEverythingInOrder) {
  Notes expected;
  Notify(expected);
  Notes notes;
  PlacingThread thread(notes);
  Notify(thread);
  thread.Finish();
  EXPECT_EQ(notes.samples, expected.samples);
  EXPECT_EQ(notes.unplaced, expected.unplaced);
  EXPECT_EQ(notes.traced, expected.traced);
}

TEST(PlacingThread, FinishesWithoutInput) {
  Notes notes;
  PlacingThread thread(notes);
  thread.Finish();
  EXPECT_TRUE(notes.samples.empty());
}

}  // namespace
}  // namespace xenoscope::correlate
