// An observer on a thread of its own sees all that a trace says, in its order.
#include "correlate/trace_observer_thread.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace xenoscope::correlate {
namespace {

// What an observer is told, a line each.
class Notes final : public DetachedObserver {
 public:
  [[nodiscard]] bool Wants(trace::Event event) const override {
    return event == trace::Event::kHvmNmi;
  }
  void OnRecord(const trace::Record& record) override { Note("record", record.tsc); }
  void OnNonRecord(const trace::Item& item) override { Note("loss", item.first_lost); }
  void OnRunstateInterval(const RunstateInterval& interval) override {
    Note("state", interval.range.begin);
  }
  void OnSegment(const Segment& segment) override { Note("segment", segment.range.begin); }
  void OnExit(const ExitArc& arc) override { Note("exit", arc.range.begin); }
  void OnMark(const Mark& mark) override { Note("mark", mark.tsc); }

  std::vector<std::string> lines;

 private:
  void Note(const char* what, Tsc at) { lines.push_back(fmt::format("{} {}", what, at.value)); }
};

// Says the `i`-th of several things, one after the other of different kinds.
void Say(uint64_t i, TraceObserver& observer) {
  static TimelineObserver nobody;
  static const Timeline timeline(nobody);
  const TscRange range{Tsc{i}, Tsc{i + 1}};
  trace::Record record;
  record.tsc = Tsc{i};
  trace::Item loss;
  loss.first_lost = Tsc{i};
  RunstateInterval interval;
  interval.range = range;
  Segment segment;
  segment.range = range;
  ExitArc arc;
  arc.range = range;
  Mark mark;
  mark.tsc = Tsc{i};
  switch (i * i % 7) {  // 0, 1, 4, 2, 2, 4, 1
    case 0:
      if (i % 2 == 0) return observer.OnRecord(record, timeline);
      return observer.OnNonRecord(loss);
    case 1:
      return observer.OnRunstateInterval(interval);
    case 2:
      return observer.OnSegment(segment);
    default:
      if (i % 2 == 0) return observer.OnExit(arc);
      return observer.OnMark(mark);
  }
}

TEST(TraceObserverThread, KeepsTheOrder) {
  Notes notes;
  TraceObserverThread thread(notes);
  EXPECT_TRUE(thread.Wants(trace::Event::kHvmNmi));
  EXPECT_FALSE(thread.Wants(trace::Event::kHvmVmexit));
  constexpr uint64_t kThings = 100'000;
  for (uint64_t i = 0; i < kThings; ++i) Say(i, thread);
  thread.OnTimelineEnd();
  ASSERT_EQ(notes.lines.size(), kThings);
  for (uint64_t i = 0; i < kThings; ++i) {
    EXPECT_TRUE(notes.lines[i].ends_with(fmt::format(" {}", i))) << notes.lines[i];
  }
  EXPECT_EQ(notes.lines[0], "record 0");
  EXPECT_EQ(notes.lines[7], "loss 7");
  EXPECT_EQ(notes.lines[8], "state 8");
  EXPECT_EQ(notes.lines[9], "mark 9");
  EXPECT_EQ(notes.lines[10], "segment 10");
}

TEST(TraceObserverThread, EndsWithNothing) {
  Notes notes;
  { const TraceObserverThread thread(notes); }
  EXPECT_TRUE(notes.lines.empty());
}

}  // namespace
}  // namespace xenoscope::correlate
