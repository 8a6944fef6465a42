#include "report/recording_line.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace xenoscope::report {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

RecordingState At(double seconds, uint64_t dom0, uint64_t web, uint64_t trace) {
  RecordingState state;
  state.seconds = seconds;
  state.domains = {{"Domain-0", dom0}, {"web", web}};
  state.trace_bytes = trace;
  state.disk_left = 12'300'000'000;
  state.own_cpu = seconds / 50;
  return state;
}

TEST(RecordingLine, ShowsRatesSinceLastLine) {
  EXPECT_EQ(RecordingLine(At(1, 100, 10, 1'000'000), At(3, 300, 1210, 5'000'000), 200),
            "3 s: 700 samples/s (web 600, Domain-0 100); 0 lost; trace 2.0 MB/s; 12.3 GB free; "
            "own CPU 2.0 %");
}

TEST(RecordingLine, NewDomainStartsAtZero) {
  RecordingState before = At(1, 100, 0, 0);
  before.domains.pop_back();
  EXPECT_THAT(RecordingLine(before, At(2, 100, 50, 0), 200), HasSubstr("(web 50, Domain-0 0)"));
}

TEST(RecordingLine, OmitsWhatIsNotRecorded) {
  RecordingState now = At(2, 0, 0, 600'000);
  now.sampling = false;
  now.domains.clear();
  EXPECT_EQ(RecordingLine(RecordingState(), now, 200),
            "2 s; trace 0.3 MB/s; 12.3 GB free; own CPU 2.0 %");
  now = At(2, 10, 20, 0);
  now.tracing = false;
  EXPECT_EQ(RecordingLine(RecordingState(), now, 200),
            "2 s: 15 samples/s (web 10, Domain-0 5); 0 lost; 12.3 GB free; own CPU 2.0 %");
}

TEST(RecordingLine, ShowsTraceLoss) {
  RecordingState now = At(1, 10, 20, 1'000'000);
  now.lost_trace = 0.564;
  EXPECT_THAT(RecordingLine(RecordingState(), now, 200),
              HasSubstr("; trace 1.0 MB/s, 56 % of it lost; "));
  now.lost_trace = 0.004;
  EXPECT_THAT(RecordingLine(RecordingState(), now, 200), HasSubstr(", < 1 % of it lost; "));
}

TEST(RecordingLine, FitsTheTerminal) {
  const RecordingState before;
  const RecordingState now = At(1, 10, 20, 1'000'000);
  EXPECT_EQ(RecordingLine(before, now, 90),
            "1 s: 30 samples/s (web 20, 1 more); 0 lost; trace 1.0 MB/s; 12.3 GB free; own "
            "CPU 2.0 %");
  for (size_t width = 0; width < 100; ++width) {
    EXPECT_LE(RecordingLine(before, now, width).size(), width);
  }
}

TEST(LossWarning, WarnsAboveOnePercent) {
  EXPECT_FALSE(LossWarning(0, 0));
  EXPECT_FALSE(LossWarning(99, 1));
  EXPECT_THAT(*LossWarning(98, 2), HasSubstr("WARNING: 2.0 % of the samples were lost (2 of 100)"));
  EXPECT_THAT(*LossWarning(98, 2), HasSubstr("--drain-interval"));
}

TEST(TraceLossWarning, WarnsAboveOnePercentOfTime) {
  EXPECT_FALSE(TraceLossWarning(0, 0, 1024));
  EXPECT_FALSE(TraceLossWarning(9, 0.009, 1024));
  EXPECT_THAT(*TraceLossWarning(318'131, 0.79, 2),
              AllOf(HasSubstr("WARNING: in 79.0 % of the time the trace was lost (318131 records)"),
                    HasSubstr("buffers of 2 pages"), HasSubstr("--trace-buffer")));
}

TEST(LateDrainWarning, SaysWhatHelps) {
  const auto warning = LateDrainWarning({"xenoprof", 0.005, 0.085, 0.126}, false);
  ASSERT_TRUE(warning);
  EXPECT_THAT(*warning, HasSubstr("xenoprof was drained every 85.0 ms (99 % within 126.0 ms), and "
                                  "5.0 ms were asked for"));
  EXPECT_THAT(*warning, HasSubstr("record with --boost, or raise dom0's weight"));
  EXPECT_THAT(*LateDrainWarning({"xenoprof", 0.005, 0.085, 0.126}, true),
              HasSubstr("with --boost it still is: dom0 needs a pCPU of its own"));
}

TEST(LateDrainWarning, IsSilentWhileDrainsAreNearlyInTime) {
  EXPECT_FALSE(LateDrainWarning({"xenoprof", 0.005, 0.0051, 0.015}, false));
  EXPECT_TRUE(LateDrainWarning({"xenoprof", 0.005, 0.0051, 0.03}, false));
  EXPECT_TRUE(LateDrainWarning({"xenoprof", 0.005, 0.011, 0.015}, false));
}

}  // namespace
}  // namespace xenoscope::report
