// A recorder stays below its budget: what it records of what was asked for, slice by slice.
#include "sampler/budget.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace xenoscope::sampler {
namespace {

using ::testing::ElementsAre;

TEST(ParseBudgetTest, TakesProcessorAndBytes) {
  struct Case {
    const char* text;
    double cpu;
    double bytes;
  };
  for (const Case& c : {Case{"2%", 0.02, 0}, Case{"1MB/s", 0, 1e6},
                        Case{"2.5%,500kB/s", 0.025, 5e5}, Case{"1MB/s,200%", 2, 1e6}}) {
    const auto budget = ParseBudget(c.text);
    ASSERT_TRUE(budget) << c.text;
    EXPECT_DOUBLE_EQ(budget->cpu, c.cpu) << c.text;
    EXPECT_DOUBLE_EQ(budget->bytes_per_second, c.bytes) << c.text;
  }
  for (const char* const text : {"", "2", "%", "0%", "-1%", "nan%", "inf%", "1e9%", "2%,", ",2%",
                                 "2%,3%", "1MB/s,1kB/s", "1GB/s", "2 %", "2%;1MB/s"}) {
    EXPECT_FALSE(ParseBudget(text)) << text;
  }
}

constexpr double kSlice = 60;

// A cost by part of the budget of 2 % of a CPU; samples and trace wrote these parts of the bytes.
RecordingCost Cost(double load, uint64_t samples = 1, uint64_t trace = 0) {
  return {kSlice, load * 0.02 * kSlice, samples, trace};
}

TEST(BudgetControllerTest, TakesLessOfWhatWritesMore) {
  struct Step {
    RecordingCost cost;
    double rate;
    size_t trace;
  };
  BudgetController controller({.cpu = 0.02}, 2);
  for (const Step& step : {
           Step{Cost(0.9), 1, 0},            // below the budget
           Step{Cost(1.5, 1, 9), 1, 1},      // the trace has more bytes
           Step{Cost(1.8, 9, 1), 0.5, 1},    // 0.9 / 1.8
           Step{Cost(100, 9, 1), 0.125, 1},  // no more than to a quarter at once
           Step{Cost(1.5, 1, 9), 0.125, 2},
           Step{Cost(1.8, 1, 9), 0.0625, 2},  // the trace has no further step
           Step{Cost(100), 1.0 / 64, 2}, Step{Cost(100), 1.0 / 64, 2},  // no slice can record less
       }) {
    controller.Take(step.cost);
    EXPECT_DOUBLE_EQ(controller.plan().rate, step.rate);
    EXPECT_EQ(controller.plan().trace_step, step.trace);
  }
  EXPECT_TRUE(controller.exceeded());
}

TEST(BudgetControllerTest, KeepsTheTighterLimit) {
  BudgetController controller({.cpu = 0.02, .bytes_per_second = 1e6}, 0);
  EXPECT_FALSE(controller.Take({kSlice, 0.9 * 0.02 * kSlice, 50'000'000, 5'000'000}));
  EXPECT_TRUE(controller.Take({kSlice, 0.1 * 0.02 * kSlice, 120'000'000, 0}));
  EXPECT_DOUBLE_EQ(controller.plan().rate, 0.45);
}

TEST(BudgetControllerTest, TakesMoreAgainWhenThereIsRoom) {
  BudgetController controller({.cpu = 0.02}, 1);
  controller.Take(Cost(1.5, 1, 9));
  controller.Take(Cost(1.8));
  std::vector<std::string> plans;
  for (int slice = 0; slice < 6; ++slice) {
    plans.push_back(fmt::format("{:.2f} {}", controller.plan().rate, controller.plan().trace_step));
    controller.Take(Cost(0.4));
  }
  EXPECT_THAT(plans, ElementsAre("0.50 1", "0.50 1", "1.00 1", "1.00 1", "1.00 0", "1.00 0"));
}

// Hosts whose cost is a basic one, one by sample, and one by what is traced; and that become calm.
TEST(BudgetControllerTest, StaysBelowTheBudgetOfSimulatedHosts) {
  std::mt19937_64 random(1);
  const auto draw = [&random](double most) {
    return std::uniform_real_distribution<double>(0, most)(random);
  };
  for (int host = 0; host < 200; ++host) {
    BudgetController controller({.cpu = 0.02, .bytes_per_second = 1e6}, 3);
    const double base = draw(0.008);
    const double by_sample = draw(0.2);
    const double by_trace = draw(0.2);
    const auto cost_now = [&](double busy) {
      const RecordingPlan& plan = controller.plan();
      const double traced = 1 - static_cast<double>(plan.trace_step) / 3;
      const double samples = busy * by_sample * plan.rate;
      const double trace = busy * by_trace * traced;
      return RecordingCost{kSlice, (base + samples + trace) * kSlice,
                           static_cast<uint64_t>(4e7 * samples * kSlice),
                           static_cast<uint64_t>(4e7 * trace * kSlice)};
    };
    int above = 0;
    for (int slice = 0; slice < 1000; ++slice) {
      controller.Take(cost_now(1));
      if (controller.exceeded()) ++above;
    }
    // Some to find the plan, then one of 64 that try a step that costs too much.
    EXPECT_LE(above, 45) << base << " " << by_sample << " " << by_trace;
    for (int slice = 0; slice < 2000; ++slice) controller.Take(cost_now(0.001));
    EXPECT_EQ(controller.plan(), RecordingPlan());
  }
}

TEST(PlannedTest, ReducesTheTraceToNone) {
  RecordRequest asked;
  asked.samples.emplace();
  asked.trace.emplace();
  asked.trace->event_mask = trace::kDefaultMask;
  const std::vector<TraceStep> steps = TraceStepsOf(asked);
  std::vector<std::string> names;
  for (const TraceStep& step : steps) names.push_back(step.name);
  EXPECT_THAT(names, ElementsAre("exits", "sched", "none"));
  for (size_t step = 0; step < steps.size(); ++step) {
    const RecordRequest planned = Planned(asked, steps, {}, {1, step + 1});
    ASSERT_EQ(planned.trace.has_value(), steps[step].mask.has_value());
    if (!planned.trace) continue;
    // A part of what was asked for.
    EXPECT_EQ(planned.trace->event_mask.value & ~asked.trace->event_mask.value, 0U);
    EXPECT_TRUE(planned.trace->event_mask.Includes(trace::Event::kRunstateChange));
  }
  asked.samples.reset();  // the trace is all that there is
  EXPECT_EQ(TraceStepsOf(asked).back().name, "sched");
  asked.trace.reset();
  EXPECT_TRUE(TraceStepsOf(asked).empty());
}

TEST(PlannedTest, LowersTheRateOfEachKindOfEvent) {
  RecordRequest asked;
  asked.samples.emplace();
  asked.samples->events =
      *ParseEventSpecs(std::vector<std::string>{"cycles:1000000", "cs@200", "x"});
  asked.samples->hpet_hz = 500;
  const RecordRequest planned = Planned(asked, {}, {}, {0.25, 0});
  const SampleRequest& samples = *planned.samples;
  EXPECT_EQ(samples.events[0].period, 4'000'000U);
  EXPECT_EQ(samples.events[1].hz, 50U);
  EXPECT_EQ(samples.events[2].hz, 250U);
  EXPECT_EQ(samples.hpet_hz, 125U);
  EXPECT_EQ(samples.poll_hz, asked.samples->poll_hz / 4);
}

// A request without events takes those that its source chose, with the period that they had.
TEST(PlannedTest, LowersTheRateOfTheEventsThatASourceChose) {
  RecordRequest asked;
  asked.samples.emplace();
  recording::EventInfo counted;
  counted.name = "cpu_clk_unhalted";
  counted.period = 3'000'001;
  counted.source = "xenoprof";
  recording::EventInfo of_guest;
  of_guest.name = "cycles";
  of_guest.source = "agent-3";
  const std::vector<recording::EventInfo> events = {counted, of_guest};
  EXPECT_TRUE(Planned(asked, {}, events, {}).samples->events.empty());
  const RecordRequest planned = Planned(asked, {}, events, {0.5, 0});
  ASSERT_EQ(planned.samples->events.size(), 1U);
  EXPECT_EQ(planned.samples->events[0].name, "cpu_clk_unhalted");
  EXPECT_EQ(planned.samples->events[0].period, 6'000'002U);
}

}  // namespace
}  // namespace xenoscope::sampler
