// Those who observe a trace see what a timeline in the order of time says of each vCPU, and no more
// of it than they asked for.
#include "correlate/timeline_pass.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "recording/plain_file.h"

namespace xenoscope::correlate {
namespace {

using testing::IsEmpty;

// What an observer is told, a line each, by vCPU.
class Notes final : public TraceObserver {
 public:
  [[nodiscard]] bool Wants(trace::Event event) const override {
    return event == trace::Event::kHvmVmexit;
  }
  void OnRecord(const trace::Record& record, const Timeline& timeline) override {
    EXPECT_EQ(record.event, trace::Event::kHvmVmexit);
    const VcpuTrack* const vcpu = timeline.Current(record.pcpu);
    if (vcpu != nullptr) Note(vcpu->ref, "VMEXIT", {record.tsc, record.tsc});
  }
  void OnNonRecord(const trace::Item& /*item*/) override { ++non_records; }
  void OnRunstateInterval(const RunstateInterval& interval) override {
    Note(interval.vcpu, ToString(interval.state), interval.range);
  }
  void OnSegment(const Segment& segment) override {
    Note(segment.vcpu, ToString(segment.kind), segment.range);
  }
  void OnExit(const ExitArc& arc) override {
    Note(arc.vcpu, arc.finished ? "exit" : "unfinished exit", arc.range);
  }
  void OnMark(const Mark& mark) override { Note(mark.vcpu, "mark", {mark.tsc, mark.tsc}); }
  void OnTraceEnd(const Timeline& timeline) override {
    EXPECT_FALSE(ended);
    now = timeline.now();
  }
  void OnTimelineEnd() override { ended = true; }

  // Returns the lines of what began before the time.
  [[nodiscard]] std::map<VcpuRef, std::vector<std::string>> Before(Tsc end) const {
    std::map<VcpuRef, std::vector<std::string>> before;
    for (const auto& [vcpu, said] : lines) {
      for (const auto& [begin, text] : said) {
        if (begin < end && !IsIdle(vcpu)) before[vcpu].push_back(text);
      }
    }
    return before;
  }

  struct Line {
    Tsc begin;
    std::string text;
  };
  std::map<VcpuRef, std::vector<Line>> lines;
  size_t non_records = 0;
  Tsc now;
  bool ended = false;

 private:
  void Note(VcpuRef vcpu, const char* what, TscRange at) {
    lines[vcpu].push_back({at.begin, fmt::format("{} {} {}", what, at.begin.value, at.end.value)});
  }
};

class ObservedFile : public testing::Test {
 protected:
  void SetUp() override {
    const auto plain = recording::PlainFile::Open(XENOSCOPE_TEST_DATA "/small.xeno/trace.xentrace");
    ASSERT_TRUE(plain.ok()) << plain.status();
    auto file = trace::TraceFile::Open(plain->path());
    ASSERT_TRUE(file.ok()) << file.status();
    file_.emplace(*std::move(file));
    trace::OrderedStream stream = file_->Stream();
    Timeline timeline(expected_);
    while (const trace::Item* item = stream.Next()) {
      if (item->kind != trace::ItemKind::kRecord) {
        expected_.OnNonRecord(*item);
      } else if (expected_.Wants(item->record.event)) {
        expected_.OnRecord(item->record, timeline);
      }
      timeline.Take(*item);
    }
    expected_.OnTraceEnd(timeline);
    timeline.Finish();
  }

  std::optional<trace::TraceFile> file_;
  Notes expected_;
};

TEST_F(ObservedFile, ShowsAllOfEachVcpuInItsOrder) {
  std::array<Notes, 2> notes;
  ObserveTrace(*file_, std::array<TraceObserver*, 2>{&notes[0], &notes[1]});
  for (const Notes& each : notes) {
    EXPECT_TRUE(each.ended);
    EXPECT_EQ(each.now, expected_.now);
    EXPECT_EQ(each.non_records, expected_.non_records);
    EXPECT_GT(each.Before(trace::OrderedStream::kEnd).size(), 2U);
    EXPECT_EQ(each.Before(trace::OrderedStream::kEnd),
              expected_.Before(trace::OrderedStream::kEnd));
  }
}

// What is open at the end of the time that is wanted is shown whole, but for what is blocked.
TEST_F(ObservedFile, StopsOnceWhatBeganBeforeTheEndHasEnded) {
  const Tsc begin = file_->Stream().next_tsc();
  const Tsc end = begin + (expected_.now - begin) / 4;
  Notes notes;
  ObserveTrace(*file_, std::array<TraceObserver*, 1>{&notes}, end);
  EXPECT_TRUE(notes.ended);
  EXPECT_GE(notes.now, end);
  EXPECT_LT(notes.now, begin + (expected_.now - begin) / 2);
  const auto of_runs = [](const std::map<VcpuRef, std::vector<std::string>>& lines) {
    std::map<VcpuRef, std::vector<std::string>> of;
    for (const auto& [vcpu, said] : lines) {
      for (const std::string& line : said) {
        if (!line.starts_with("blocked") && !line.starts_with("runnable")) of[vcpu].push_back(line);
      }
    }
    return of;
  };
  EXPECT_EQ(of_runs(notes.Before(end)), of_runs(expected_.Before(end)));
}

TEST_F(ObservedFile, ShowsNothingBeforeTheTrace) {
  Notes notes;
  ObserveTrace(*file_, std::array<TraceObserver*, 1>{&notes}, Tsc{1});
  EXPECT_TRUE(notes.ended);
  EXPECT_THAT(notes.Before(Tsc{1}), IsEmpty());
}

}  // namespace
}  // namespace xenoscope::correlate
