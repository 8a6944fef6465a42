// Tests what a page's timeline leaves out when there are many samples, and that the page says so;
// and that it knows the pCPU that woke a vCPU.
#include "report/html/page_timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

namespace xenoscope::report {
namespace {

using nlohmann::ordered_json;
using testing::Each;

constexpr size_t kWords = 6;  // a sample's words: vCPU, mode, function, begin, length, count

class OneFunction final : public Resolver {
 public:
  FunctionId Resolve(DomainId /*domain*/, Mode /*mode*/, Address /*address*/) override {
    return {};
  }
  const Function& Describe(FunctionId /*id*/) const override { return function_; }
  std::vector<Frame> Inlined(DomainId /*domain*/, Mode /*mode*/, Address /*address*/) override {
    return {};
  }

 private:
  Function function_{"web", "serve", ""};
};

// A fixture with two vCPUs that run all the time.
class PageTimelineSamples : public testing::Test {
 protected:
  static constexpr uint64_t kLength = 10'000'000;

  PageTimelineSamples() {
    report_.domain_name = [](DomainId) { return "web"; };
    report_.sampled = {Tsc{0}, Tsc{kLength}};
    for (uint32_t vcpu = 0; vcpu < 2; ++vcpu) {
      correlate::RunstateInterval run;
      run.vcpu = Vcpu(vcpu);
      run.vcpu_index = vcpu;
      run.range = report_.sampled;
      run.state = correlate::TimelineState::kRunning;
      trace_observer_.OnRunstateInterval(run);
    }
  }

  static VcpuRef Vcpu(uint32_t number) { return {DomainId{1}, VcpuId{number}}; }

  void Place(uint32_t vcpu, uint64_t begin, uint64_t length) {
    correlate::PlacedSample placed;
    placed.sample = &sample_;
    placed.vcpu = Vcpu(vcpu);
    placed.when = {Tsc{begin}, Tsc{begin + length}};
    samples_.OnPlaced(placed);
  }

  // One value of each entry of the page.
  static std::vector<uint64_t> Column(const ordered_json& page, size_t column) {
    std::vector<uint64_t> values;
    const ordered_json& words = page["samples"];
    for (size_t i = column; i < words.size(); i += kWords) {
      values.push_back(words[i].get<uint64_t>());
    }
    return values;
  }
  static uint64_t Sum(const std::vector<uint64_t>& values) {
    uint64_t sum = 0;
    for (const uint64_t value : values) sum += value;
    return sum;
  }

  ordered_json WholePage() {
    trace_observer_.OnTimelineEnd();
    ordered_json page;
    EXPECT_TRUE(timeline_.AddTo(samples_, page).ok());
    EXPECT_TRUE(timeline_.AddIntervals(1'000'000, page["timeline"]).ok());
    return page;
  }
  ordered_json Page() { return WholePage()["timeline"]; }

  OneFunction resolver_;
  ProfileReport report_;
  recording::Sample sample_;
  PageTimeline timeline_{report_, Tsc{0}};
  PageSamples samples_{resolver_};
  correlate::TraceObserver& trace_observer_ = timeline_;
};

TEST_F(PageTimelineSamples, KeepAllSamplesWithinLimit) {
  for (uint64_t i = 0; i < PageSamples::kMaxSamples; ++i) Place(i % 2, 100 * i, 1);
  const ordered_json page = Page();
  EXPECT_EQ(Column(page, 3).size(), PageSamples::kMaxSamples);
  EXPECT_EQ(page["kept_samples"], 1);
  EXPECT_EQ(page["samples_left_out"], 0);
  EXPECT_EQ(Sum(Column(page, 5)), PageSamples::kMaxSamples);
}

TEST_F(PageTimelineSamples, ExcessSamplesAreThinnedEvenly) {
  constexpr uint64_t kAll = 3 * PageSamples::kMaxSamples;
  for (uint64_t i = 0; i < kAll; ++i) Place(i % 2, 100 * i, 1);
  const ordered_json page = Page();
  EXPECT_EQ(page["kept_samples"], 4);
  const std::vector<uint64_t> vcpus = Column(page, 0);
  const std::vector<uint64_t> begins = Column(page, 3);
  for (const uint64_t vcpu : {0, 1}) {
    std::vector<uint64_t> own;
    for (size_t i = 0; i < begins.size(); ++i) {
      if (vcpus[i] == vcpu) own.push_back(begins[i]);
    }
    EXPECT_EQ(own.size(), kAll / 2 / 4);
    for (size_t i = own.size() - 1; i > 0; --i) own[i] -= own[i - 1];
    EXPECT_THAT(std::span(own).subspan(1), Each(800));
  }
  EXPECT_EQ(Sum(Column(page, 5)) + page["samples_left_out"].get<uint64_t>(), kAll);
}

// The runnable interval ends long after the record that woke the vCPU, which another pCPU wrote.
TEST_F(PageTimelineSamples, KnowTheWaker) {
  const std::array<uint32_t, 2> words{1U << 16U | 1U, 0};
  trace::Record wake;
  wake.event = trace::Event::kRunstateChange;
  wake.id = 0x21001 | 2U << 8U | 1U << 4U;  // from blocked to runnable
  wake.tsc = Tsc{5000};
  wake.pcpu = PcpuId{3};
  wake.payload = {reinterpret_cast<const std::byte*>(words.data()), 2};
  correlate::TimelineObserver nobody;
  trace_observer_.OnRecord(wake, correlate::Timeline(nobody));
  correlate::RunstateInterval wait;
  wait.vcpu = Vcpu(1);
  wait.vcpu_index = 1;
  wait.pcpu = PcpuId{0};
  wait.range = {Tsc{5000}, Tsc{6000}};
  wait.state = correlate::TimelineState::kRunnable;
  wait.cause = correlate::RunnableCause::kWake;
  trace_observer_.OnRunstateInterval(wait);
  wait.range = {Tsc{7000}, Tsc{8000}};  // woken by a record that was lost
  trace_observer_.OnRunstateInterval(wait);
  const ordered_json page = Page();
  EXPECT_THAT(page["run_kinds"], testing::Contains(ordered_json({1, 1, 0, 4})));
  EXPECT_THAT(page["run_kinds"], testing::Contains(ordered_json({1, 1, 0, 0})));
}

// The time of an exit during which the vCPU does not run all the time comes in parts.
TEST_F(PageTimelineSamples, HaveTimeOfExitsOnce) {
  constexpr uint32_t kReason = 10;
  const auto segment = [&](uint64_t exit, uint64_t begin, uint64_t end, bool first,
                           bool completed) {
    correlate::Segment part;
    part.vcpu = Vcpu(0);
    part.range = {Tsc{begin}, Tsc{end}};
    part.kind = correlate::SegmentKind::kExit;
    part.reason = kReason;
    part.exit = exit;
    part.first = first;
    part.completed = completed;
    trace_observer_.OnSegment(part);
  };
  const auto finish = [&](uint64_t exit, uint64_t begin, uint64_t end) {
    correlate::ExitArc arc;
    arc.vcpu = Vcpu(0);
    arc.range = {Tsc{begin}, Tsc{end}};
    arc.reason = kReason;
    arc.exit = exit;
    arc.finished = true;
    trace_observer_.OnExit(arc);
  };
  segment(16, 1000, 1400, true, true);  // one part
  finish(16, 1000, 1400);
  segment(32, 2000, 2100, true, false);  // two
  segment(32, 5000, 5030, false, true);
  finish(32, 2000, 5030);
  segment(48, kLength - 50, kLength + 50, true, true);  // one that is shown in part
  finish(48, kLength - 50, kLength + 50);
  const ordered_json page = WholePage();
  ASSERT_EQ(page["exits"].size(), 1U);
  EXPECT_EQ(page["exits"][0]["count"], 3);
  EXPECT_EQ(page["exits"][0]["cycles"], 400 + 100 + 30 + 50);
}

// Brackets hold several samples each, and continue while the list is thinned.
TEST_F(PageTimelineSamples, CountBracketedSamples) {
  uint64_t all = 0;
  for (uint64_t bracket = 0; bracket < 2 * PageSamples::kMaxSamples + 7; ++bracket) {
    for (uint64_t i = 0; i < 1 + bracket % 3; ++i, ++all) {
      for (const uint32_t vcpu : {0U, 1U}) Place(vcpu, 100 * bracket, 100);
    }
  }
  const ordered_json page = Page();
  const std::vector<uint64_t> counts = Column(page, 5);
  EXPECT_LE(counts.size(), PageSamples::kMaxSamples);
  EXPECT_TRUE(std::has_single_bit(page["kept_samples"].get<uint64_t>()));
  EXPECT_GT(page["samples_left_out"].get<uint64_t>(), 0);
  EXPECT_EQ(Sum(counts) + page["samples_left_out"].get<uint64_t>(), 2 * all);
}

}  // namespace
}  // namespace xenoscope::report
