// A profile from a recording to its rows: everything that was sampled is in it, or counted beside
// it.
#include "profile/profiler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "correlate/pipeline_observer.h"
#include "correlate/timeline.h"
#include "fake_recording.h"
#include "profile/sample_choice.h"
#include "profile/trace_input.h"

namespace xenoscope::profile {
namespace {

using correlate::Dimension;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// Names every address alike.
class OneFunction final : public Resolver {
 public:
  FunctionId Resolve(DomainId /*domain*/, Mode /*mode*/, Address /*address*/) override {
    return {0};
  }
  const Function& Describe(FunctionId /*id*/) const override { return function_; }
  std::vector<Frame> Inlined(DomainId /*domain*/, Mode /*mode*/, Address /*address*/) override {
    return {};
  }

 private:
  Function function_{.image = "vmlinux", .name = "work", .unresolved = ""};
};

double SamplesIn(const correlate::ProfileResult& result) {
  double samples = 0;
  for (const correlate::ProfileRow& row : result.rows) samples += row.samples;
  return samples;
}

class ProfilerTest : public ::testing::Test {
 protected:
  ProfileRequest Request(std::vector<Dimension> by) {
    ProfileRequest request;
    request.resolver = &resolver_;
    request.columns.by = std::move(by);
    return request;
  }
  // The profile of the first event of what was made, or of `events`, without a trace.
  ProfileResults Run(ProfileRequest request, EventGroup events = {0}) {
    recording_ = made_.Open();
    auto profiler =
        Profiler::OfRecording(std::move(request), *recording_, recording_->info().events,
                              {.events = std::move(events)}, {});
    EXPECT_TRUE(profiler.ok()) << profiler.status();
    samples_ = profiler->sample_set();
    auto results = profiler->Run();
    EXPECT_TRUE(results.ok()) << results.status();
    return *std::move(results);
  }

  OneFunction resolver_;
  FakeRecording made_;
  std::optional<recording::Recording> recording_;
  SampleSet samples_;
};

TEST_F(ProfilerTest, CountsRecordedSamplesWithoutTrace) {
  made_.Sample(100, 110, 0x10);
  made_.Sample(200, 210, 0x20);
  const ProfileResults results = Run(Request({Dimension::kDomain}));
  EXPECT_EQ(results.counts.samples, 2U);
  EXPECT_DOUBLE_EQ(SamplesIn(results.result), 2);
  EXPECT_FALSE(samples_.traced);
  EXPECT_EQ(samples_.sampled, (TscRange{Tsc{100}, Tsc{210}}));
  EXPECT_THAT(results.placing_checks, IsEmpty());
}

TEST_F(ProfilerTest, CountsSamplesOutsideTheRange) {
  made_.Sample(100, 110, 0x10);
  made_.Sample(200, 210, 0x20);
  ProfileRequest request = Request({Dimension::kDomain});
  request.within = {Tsc{150}, Tsc{250}};
  const ProfileResults results = Run(std::move(request));
  EXPECT_DOUBLE_EQ(SamplesIn(results.result), 1);
  EXPECT_EQ(results.outside, 1U);
  EXPECT_EQ(samples_.sampled, (TscRange{Tsc{150}, Tsc{210}}));
}

TEST_F(ProfilerTest, FurtherColumnsHaveTheSameSamples) {
  made_.Sample(100, 110, 0x10);
  made_.Sample(200, 210, 0x20);
  ProfileRequest request = Request({Dimension::kDomain});
  request.columns.further_by = {{Dimension::kAddress}, {Dimension::kMode}};
  const ProfileResults results = Run(std::move(request));
  EXPECT_THAT(results.result.rows, SizeIs(1));
  ASSERT_THAT(results.further, SizeIs(2));
  EXPECT_THAT(results.further[0].rows, SizeIs(2));
  EXPECT_THAT(results.further[1].rows, SizeIs(1));
  for (const correlate::ProfileResult& further : results.further) {
    EXPECT_DOUBLE_EQ(SamplesIn(further), SamplesIn(results.result));
  }
}

// Two events beside each other: the shares are of the first one's samples, and the ratio of both.
TEST_F(ProfilerTest, ComparesEvents) {
  made_.info.events = {EventOf("cycles", "pmu"), EventOf("instructions", "pmu")};
  made_.info.events[1].period = 3000;
  made_.Sample(100, 110, 0x10, 0);
  made_.Sample(200, 210, 0x20, 0);
  made_.Sample(210, 220, 0x20, 1);
  made_.Sample(230, 240, 0x30, 1);
  recording_ = made_.Open();
  auto profiler =
      Profiler::OfRecording(Request({Dimension::kAddress}), *recording_, recording_->info().events,
                            {.events = {0}, .beside = {{1}}}, {});
  ASSERT_TRUE(profiler.ok()) << profiler.status();
  EXPECT_EQ(profiler->sample_set().event, "{cycles,instructions}");
  const auto results = profiler->Run();
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->counts.samples, 4U);
  EXPECT_DOUBLE_EQ(SamplesIn(results->result), 2);
  EXPECT_THAT(results->result.event_samples, ::testing::ElementsAre(2, 2));
  ASSERT_THAT(results->result.rows, SizeIs(3));
  for (const correlate::ProfileRow& row : results->result.rows) {
    ASSERT_THAT(row.ratios, SizeIs(1));
    if (row.address == 0x20) {
      EXPECT_DOUBLE_EQ(*row.ratios[0].value, 3);
      EXPECT_DOUBLE_EQ(row.share, 0.5);
    }
    EXPECT_EQ(row.ratios[0].value.has_value(), row.address != 0x30);
  }
}

TEST_F(ProfilerTest, LineIsThatOfInnermostFrame) {
  made_.Sample(100, 110, 0x10);
  ProfileRequest request = Request({Dimension::kLine});
  request.frames_at = [](DomainId, Mode, AddressSpaceId, Address) {
    return std::vector<Frame>{{"inner", {"hash.c", 12}}, {"outer", {"main.c", 3}}};
  };
  const ProfileResults results = Run(std::move(request));
  ASSERT_THAT(results.result.rows, SizeIs(1));
  EXPECT_EQ(results.result.rows[0].line, "hash.c:12");
}

TEST_F(ProfilerTest, NoLineWithoutFrames) {
  made_.Sample(100, 110, 0x10);
  const ProfileResults results = Run(Request({Dimension::kLine}));
  ASSERT_THAT(results.result.rows, SizeIs(1));
  EXPECT_EQ(results.result.rows[0].line, "[no line]");
}

TEST_F(ProfilerTest, SamplesOfRunnableVcpusHaveNoCycles) {
  made_.info.events[0].waiting = true;
  made_.Sample(100, 110, 0x10);
  Run(Request({Dimension::kDomain}));
  EXPECT_FALSE(samples_.is_time);
  ASSERT_THAT(samples_.cautions, SizeIs(1));
  EXPECT_THAT(samples_.cautions[0], HasSubstr("waited"));
}

TEST_F(ProfilerTest, DoesNotStratifySamplesOfSomeModes) {
  made_.info.events[0].modes = ModeSet{.kernel = true};
  made_.Sample(100, 110, 0x10);
  made_.Sample(200, 210, 0x20);
  const ProfileResults results = Run(Request({Dimension::kDomain}));
  EXPECT_TRUE(samples_.is_time);
  EXPECT_FALSE(samples_.stratified);
  EXPECT_EQ(samples_.event, "cycles:k");
  EXPECT_DOUBLE_EQ(results.result.cycles, 2 * 1000.0);
  ASSERT_THAT(samples_.cautions, SizeIs(1));
  EXPECT_THAT(samples_.cautions[0], HasSubstr("in kernel mode only"));
}

TEST_F(ProfilerTest, NeedsOnePeriodWithoutTrace) {
  made_.info.events = {EventOf("cycles"), EventOf("cycles")};
  made_.info.events[0].source = "agent-1";
  made_.info.events[1].source = "agent-2";
  made_.Sample(100, 110, 0x10, /*event=*/0);
  made_.Sample(200, 210, 0x20, /*event=*/1);
  Run(Request({Dimension::kDomain}), {0, 1});
  EXPECT_TRUE(samples_.is_time);
  made_.info.events[1].period = 77;
  const ProfileResults results = Run(Request({Dimension::kDomain}), {0, 1});
  EXPECT_FALSE(samples_.is_time);
  EXPECT_DOUBLE_EQ(SamplesIn(results.result), 2);
  ASSERT_THAT(samples_.cautions, SizeIs(1));
  EXPECT_THAT(samples_.cautions[0], HasSubstr("different periods"));
}

TEST_F(ProfilerTest, NotesIncompleteRecording) {
  made_.info.state = recording::State::kEndedEarly;
  made_.info.stopped_because = "the disk was full";
  made_.Sample(100, 110, 0x10);
  Run(Request({Dimension::kDomain}));
  ASSERT_THAT(samples_.cautions, SizeIs(1));
  EXPECT_THAT(samples_.cautions[0], HasSubstr("the disk was full"));
}

TEST_F(ProfilerTest, NotesWeightThatWasRaised) {
  made_.info.boost = recording::BoostInfo{256, 2048};
  made_.Sample(100, 110, 0x10);
  Run(Request({Dimension::kDomain}));
  ASSERT_THAT(samples_.cautions, SizeIs(1));
  EXPECT_THAT(samples_.cautions[0], HasSubstr("from 256 to 2048"));
}

TEST_F(ProfilerTest, SumsLossesOverStreams) {
  for (const uint64_t lost : {3, 4}) made_.info.streams.emplace_back().logged.lost = lost;
  made_.Sample(100, 110, 0x10);
  Run(Request({Dimension::kDomain}));
  EXPECT_EQ(samples_.lost_in_buffers, 7U);
}

// What the repository's recording of real Xen gives.
class RecordedWithTraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::vector<std::string> warnings;
    auto input = OpenTraceInput(
        {.path = XENOSCOPE_TEST_DATA "/small.xeno", .clock = {}, .dialect = {}, .tsc_offsets = {}},
        warnings);
    ASSERT_TRUE(input.ok()) << input.status();
    EXPECT_THAT(warnings, IsEmpty());
    input_ = *std::move(input);
  }

  ProfileRequest Request() {
    ProfileRequest request;
    request.trace = &input_->trace;
    request.dialect = CompleteDialect(input_->dialect, input_->trace);
    request.resolver = &resolver_;
    request.columns.by = {Dimension::kDomain, Dimension::kExit};
    return request;
  }

  // Every sample is in a row, or has a reason why it is not.
  static void ExpectAllAccountedFor(const ProfileResults& results) {
    EXPECT_GT(results.counts.samples, 0U);
    EXPECT_EQ(results.counts.samples, results.counts.Attributed() + results.counts.Unplaced());
    EXPECT_NEAR(SamplesIn(results.result), static_cast<double>(results.counts.Attributed()), 1e-6);
  }

  OneFunction resolver_;
  std::optional<TraceInput> input_;
};

TEST_F(RecordedWithTraceTest, AccountsForEverySample) {
  auto profiler = Profiler::OfRecording(Request(), *input_->recording,
                                        input_->recording->info().events, {.events = {0}}, {});
  ASSERT_TRUE(profiler.ok()) << profiler.status();
  EXPECT_TRUE(profiler->sample_set().traced);
  EXPECT_EQ(profiler->sample_set().vendor, trace::Vendor::kSvm);
  auto results = profiler->Run();
  ASSERT_TRUE(results.ok()) << results.status();
  ExpectAllAccountedFor(*results);
  EXPECT_EQ(results->damaged, 0U);
}

TEST_F(RecordedWithTraceTest, CountsEveryExit) {
  auto profiler = Profiler::OfRecording(Request(), *input_->recording,
                                        input_->recording->info().events, {.events = {0}}, {});
  ASSERT_TRUE(profiler.ok()) << profiler.status();
  const auto results = profiler->Run();
  ASSERT_TRUE(results.ok()) << results.status();
  uint64_t counted = 0;
  for (const ExitCount& exit : results->exit_counts) {
    EXPECT_EQ(exit.vcpu.domain, DomainId{2});
    counted += exit.count;
  }
  uint64_t recorded = 0;
  trace::OrderedStream stream = input_->trace.Stream();
  while (const trace::Item* item = stream.Next()) {
    if (item->kind != trace::ItemKind::kRecord) continue;
    const bool is_exit = item->record.event == trace::Event::kHvmVmexit;
    if (is_exit && profiler->sample_set().sampled.Contains(item->record.tsc)) ++recorded;
  }
  EXPECT_EQ(counted, recorded);
  EXPECT_GT(recorded, 0U);
}

// The trace has the begins of what PV guests do in Xen; all of it is in the time that they ran.
TEST_F(RecordedWithTraceTest, BoundsTheTimeOfPvEntries) {
  auto profiler = Profiler::OfRecording(Request(), *input_->recording,
                                        input_->recording->info().events, {.events = {0}}, {});
  ASSERT_TRUE(profiler.ok()) << profiler.status();
  const auto results = profiler->Run();
  ASSERT_TRUE(results.ok()) << results.status();
  std::map<DomainId, double> bounds;
  uint64_t hypercalls = 0;
  for (const PvEntries& entries : results->pv_entries) {
    bounds[entries.domain] += static_cast<double>(entries.at_most);
    if (entries.kind == correlate::MarkKind::kHypercall) hypercalls += entries.count;
  }
  EXPECT_EQ(bounds.size(), 2U);  // dom0 and the PV guest
  for (const correlate::ProfileRow& row : results->result.domains) {
    if (!bounds.contains(row.domain)) continue;
    EXPECT_LE(bounds.at(row.domain), row.cycles);
  }
  uint64_t recorded = 0;
  trace::OrderedStream stream = input_->trace.Stream();
  while (const trace::Item* item = stream.Next()) {
    if (item->kind != trace::ItemKind::kRecord) continue;
    const bool is_hypercall = item->record.event == trace::Event::kPvHypercallV2;
    if (is_hypercall && profiler->sample_set().sampled.Contains(item->record.tsc)) ++recorded;
  }
  EXPECT_EQ(hypercalls, recorded);
  EXPECT_GT(recorded, 0U);
}

TEST_F(RecordedWithTraceTest, CountsExitsOnlyForRowsOfExits) {
  ProfileRequest request = Request();
  request.columns.by = {Dimension::kDomain, Dimension::kExit, Dimension::kFunction};
  auto profiler = Profiler::OfRecording(std::move(request), *input_->recording,
                                        input_->recording->info().events, {.events = {0}}, {});
  ASSERT_TRUE(profiler.ok()) << profiler.status();
  const auto results = profiler->Run();
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_THAT(results->exit_counts, IsEmpty());
}

// An observer sees what a profile without one has: it changes nothing.
class Counter final : public correlate::PipelineObserver {
 public:
  void OnRecord(const trace::Record& /*record*/) override { ++items; }
  void OnNonRecord(const trace::Item& /*item*/) override { ++items; }
  void OnPlaced(const correlate::PlacedSample& /*sample*/) override { ++placed; }
  void OnUnplaced(const recording::Sample& /*sample*/, correlate::UnplacedReason /*why*/) override {
  }
  void OnTraced(VcpuRef /*vcpu*/, correlate::Context /*context*/,
                correlate::ContextTime /*time*/) override {}

  uint64_t items = 0;
  uint64_t placed = 0;
};

TEST_F(RecordedWithTraceTest, ObserverDoesNotChangeResult) {
  Counter counter;
  ProfileRequest request = Request();
  request.observers.pipeline = &counter;
  auto watched = Profiler::OfRecording(std::move(request), *input_->recording,
                                       input_->recording->info().events, {.events = {0}}, {});
  ASSERT_TRUE(watched.ok()) << watched.status();
  const auto seen = watched->Run();
  ASSERT_TRUE(seen.ok()) << seen.status();
  EXPECT_GT(counter.items, 0U);
  EXPECT_GT(counter.placed, 0U);
  auto alone = Profiler::OfRecording(Request(), *input_->recording,
                                     input_->recording->info().events, {.events = {0}}, {});
  ASSERT_TRUE(alone.ok()) << alone.status();
  const auto unseen = alone->Run();
  ASSERT_TRUE(unseen.ok()) << unseen.status();
  ASSERT_EQ(seen->result.rows.size(), unseen->result.rows.size());
  EXPECT_NEAR(SamplesIn(seen->result), SamplesIn(unseen->result), 1e-6);
}

// Sums up what vCPUs did, and notes which thread it is called on.
class RunstateTimes final : public correlate::TraceObserver {
 public:
  explicit RunstateTimes(bool wants_segments) : wants_segments_(wants_segments) {}
  [[nodiscard]] bool Wants(trace::Event /*event*/) const override { return false; }
  void OnRecord(const trace::Record& /*record*/, const correlate::Timeline& /*timeline*/) override {
  }
  void OnNonRecord(const trace::Item& /*item*/) override {}
  void OnTraceEnd(const correlate::Timeline& /*timeline*/) override {
    is_apart = std::this_thread::get_id() != created_on_;
  }
  [[nodiscard]] bool WantsSegments() const override { return wants_segments_; }
  void OnRunstateInterval(const correlate::RunstateInterval& interval) override {
    cycles[interval.state] += interval.range.Length();
  }

  std::map<correlate::TimelineState, Cycles> cycles;
  std::optional<bool> is_apart;

 private:
  bool wants_segments_;
  std::thread::id created_on_ = std::this_thread::get_id();
};

// Observers of segments have a pass of their own, others only where there is a processor for it.
// What they see is the same.
TEST_F(RecordedWithTraceTest, ShowsTheTraceInFurtherPasses) {
  struct Case {
    std::string_view name;
    unsigned processors;
    bool with_segments;  // whether another observer wants them
    bool apart;          // whether the one that does not has a pass of its own
  };
  std::map<correlate::TimelineState, Cycles> expected;
  for (const Case& c : std::initializer_list<Case>{{"one processor", 1, false, false},
                                                   {"two processors", 2, false, true},
                                                   {"segments, one processor", 1, true, false},
                                                   {"segments, two processors", 2, true, false},
                                                   {"segments, three processors", 3, true, true}}) {
    SCOPED_TRACE(c.name);
    const unsigned before = ThreadLimit();
    SetThreadLimit(c.processors);
    RunstateTimes times(/*wants_segments=*/false);
    RunstateTimes of_segments(/*wants_segments=*/true);
    ProfileRequest request = Request();
    request.observers.trace.push_back(&times);
    if (c.with_segments) request.observers.trace.push_back(&of_segments);
    const auto results = Profiler::OfTrace(std::move(request), input_->recording->clock()).Run();
    SetThreadLimit(before);
    ASSERT_TRUE(results.ok()) << results.status();
    EXPECT_EQ(times.is_apart, c.apart);
    if (expected.empty()) expected = times.cycles;
    EXPECT_GT(expected[correlate::TimelineState::kRunning], 0U);
    EXPECT_EQ(times.cycles, expected);
    if (!c.with_segments) continue;
    EXPECT_EQ(of_segments.is_apart, true);
    EXPECT_EQ(of_segments.cycles, expected);
  }
}

// Where there is no memory, say.
class Throwing final : public correlate::TraceObserver {
 public:
  [[nodiscard]] bool Wants(trace::Event /*event*/) const override { return false; }
  void OnRecord(const trace::Record& /*record*/, const correlate::Timeline& /*timeline*/) override {
  }
  void OnNonRecord(const trace::Item& /*item*/) override {}
  void OnTraceEnd(const correlate::Timeline& /*timeline*/) override { throw std::bad_alloc(); }
};

TEST_F(RecordedWithTraceTest, ThrowsWhatAPassOfObserversThrows) {
  Throwing throwing;
  ProfileRequest request = Request();
  request.observers.trace.push_back(&throwing);
  Profiler profiler = Profiler::OfTrace(std::move(request), input_->recording->clock());
  EXPECT_THROW((void)profiler.Run(), std::bad_alloc);
}

TEST_F(RecordedWithTraceTest, AccountsForEveryExitSample) {
  Profiler profiler = Profiler::OfTrace(Request(), input_->recording->clock());
  auto results = profiler.Run();
  ASSERT_TRUE(results.ok()) << results.status();
  ExpectAllAccountedFor(*results);
  EXPECT_THAT(profiler.sample_set().cautions, SizeIs(2));
}

TEST_F(RecordedWithTraceTest, DoesNotPlaceSamplesOfRunnableVcpus) {
  // The trace says who ran; these did not.
  FakeRecording made;
  made.info.events[0].waiting = true;
  made.Sample(100, 110, 0x10);
  const auto recording = made.Open();
  auto profiler =
      Profiler::OfRecording(Request(), recording, recording.info().events, {.events = {0}}, {});
  ASSERT_TRUE(profiler.ok()) << profiler.status();
  EXPECT_TRUE(profiler->sample_set().traced);
  EXPECT_EQ(profiler->sample_set().vendor, trace::Vendor::kUnknown);
  const auto results = profiler->Run();
  ASSERT_TRUE(results.ok()) << results.status();
  EXPECT_EQ(results->counts.lost_records, 0U);
  EXPECT_THAT(results->placing_checks, IsEmpty());
}

}  // namespace
}  // namespace xenoscope::profile
