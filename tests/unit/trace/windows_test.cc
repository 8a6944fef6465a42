#include "trace/windows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/trace/trace_builder.h"

namespace xenoscope::trace {
namespace {

// "pcpu:begin-end ..." then "kind@offset+bytes ...": the whole index as one string.
std::string Describe(const WindowIndex& index) {
  std::string text;
  for (const auto& pcpu : index.pcpus) {
    for (const auto& window : pcpu.windows) {
      text += std::to_string(pcpu.pcpu.value) + ":" + std::to_string(window.begin) + "-" +
              std::to_string(window.end) + " ";
    }
  }
  for (const auto& damage : index.damages) {
    text += (damage.kind == DamageKind::kTruncated ? "truncated@" : "nowindow@") +
            std::to_string(damage.offset) + "+" + std::to_string(damage.bytes) + " ";
  }
  return text;
}

std::string IndexOf(Bytes bytes) {
  const auto index = IndexWindows(bytes);
  return index.ok() ? Describe(*index) : "refused";
}

TraceBuilder Three() {
  TraceBuilder trace;
  trace.Window(0, {Rec(kContinueRunning, 100, {0})}).Window(1, {Rec(kContinueRunning, 90, {1})});
  trace.Window(0, {Rec(kContinueRunning, 200, {0})});
  return trace;
}

TEST(Windows, GroupsWindowsByPcpu) {
  EXPECT_EQ(IndexOf(Three().bytes()), "0:12-28 0:68-84 1:40-56 ");
}

TEST(Windows, SkipsEmptyWindows) {
  TraceBuilder trace = Three();
  trace.Window(7, {});
  EXPECT_EQ(IndexOf(trace.bytes()), "0:12-28 0:68-84 1:40-56 ");
}

TEST(Windows, KeepsTruncatedWindow) {
  const TraceBuilder trace = Three();
  EXPECT_EQ(IndexOf(trace.bytes().first(80)), "0:12-28 0:68-80 1:40-56 truncated@80+0 ");
}

TEST(Windows, ReportsTruncatedHeader) {
  const TraceBuilder trace = Three();
  EXPECT_EQ(IndexOf(trace.bytes().first(61)), "0:12-28 1:40-56 truncated@56+5 ");
}

TEST(Windows, ResynchronisesAfterDamagedHeader) {
  TraceBuilder trace = Three();
  trace.words()[7] = 0xdeadbeef;  // the header of the second window
  EXPECT_EQ(IndexOf(trace.bytes()), "0:12-28 0:68-84 nowindow@28+28 ");
}

TEST(Windows, ResynchronisesInsideOversizedWindow) {
  TraceBuilder trace = Three();
  trace.words()[2] += 8;  // the size of the first window
  EXPECT_EQ(IndexOf(trace.bytes()), "0:12-28 0:68-84 1:40-56 nowindow@36+0 ");
}

TEST(Windows, RefusesFileWithoutWindows) {
  EXPECT_EQ(IndexOf(AsBytes("this is not a trace at all, is it?")), "refused");
  EXPECT_EQ(IndexOf({}), "refused");
  const auto status = IndexWindows(AsBytes("nonsense")).status();
  EXPECT_THAT(std::string(status.message()), testing::HasSubstr("at byte 0"));
}

TEST(Windows, RefusesImpossiblePcpu) {
  TraceBuilder trace;
  trace.Window(70000, {Rec(kContinueRunning, 100, {0})});
  EXPECT_EQ(IndexOf(trace.bytes()), "refused");
}

}  // namespace
}  // namespace xenoscope::trace
