// What shares are worth when most of a trace was lost: samples are drawn from a real trace, parts
// of which are then taken away, at random or as trace buffers lose them; what each domain really
// took is known.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/mapped_file.h"
#include "correlate/placing/placer.h"
#include "correlate/profile.h"
#include "correlate/timeline.h"
#include "recording/plain_file.h"
#include "trace/trace_file.h"

namespace xenoscope::correlate {
namespace {

using recording::Sample;
using trace::Item;
using trace::ItemKind;

constexpr double kMs = 2'300'000;  // cycles of the trace's clock
constexpr Cycles kDrains = 5 * static_cast<Cycles>(kMs);

// What ran, when.
class Pieces final : public TimelineObserver {
 public:
  bool WantsMarks() const override { return false; }
  void OnSegment(const Segment& segment) override {
    if (!IsIdle(segment.vcpu) && !segment.range.Empty()) all.push_back(segment);
  }
  std::vector<Segment> all;
};

class Drawn final : public SampleSource {
 public:
  const Sample* Next() override { return next_ == samples.size() ? nullptr : &samples[next_++]; }
  std::vector<Sample> samples;

 private:
  size_t next_ = 0;
};

class Nameless final : public Resolver {
 public:
  FunctionId Resolve(DomainId /*domain*/, Mode /*mode*/, Address /*address*/) override {
    return {0};
  }
  const Function& Describe(FunctionId /*id*/) const override { return function_; }
  std::vector<Frame> Inlined(DomainId /*domain*/, Mode /*mode*/, Address /*address*/) override {
    return {};
  }

 private:
  Function function_{"image", "f", ""};
};

// Which records of a trace are lost: time and number since the last time that buffers were emptied.
class Loser {
 public:
  virtual ~Loser() = default;
  virtual bool Loses(Tsc now) = 0;
};

// Stretches of random lengths.
class AtRandom final : public Loser {
 public:
  AtRandom(uint64_t seed, double kept_ms, double lost_ms)
      : random_(seed), means_{kept_ms * kMs, lost_ms * kMs} {}
  bool Loses(Tsc now) override {
    if (!until_) until_ = now;
    while (now >= *until_) {
      losing_ = !losing_;
      std::exponential_distribution<double> length(1 / means_.at(losing_ ? 1 : 0));
      until_ = *until_ + static_cast<Cycles>(length(random_)) + 1;
    }
    return losing_;
  }

 private:
  std::mt19937_64 random_;
  std::array<double, 2> means_;
  bool losing_ = false;
  std::optional<Tsc> until_;
};

// A buffer with room for so many records that is emptied now and then: what comes when it is full
// is lost, so that busy domains lose the most.
class Buffer final : public Loser {
 public:
  Buffer(uint64_t seed, size_t room, double emptied_ms)
      : random_(seed), room_(room), emptied_(emptied_ms * kMs) {}
  bool Loses(Tsc now) override {
    if (!until_ || now >= *until_) {
      std::uniform_real_distribution<double> part(0.5, 1.5);
      until_ = now + static_cast<Cycles>(emptied_ * part(random_));
      used_ = 0;
    }
    return ++used_ > room_;
  }

 private:
  std::mt19937_64 random_;
  size_t room_;
  double emptied_;
  size_t used_ = 0;
  std::optional<Tsc> until_;
};

class LostTime : public testing::Test {
 protected:
  void SetUp() override {
    auto plain_file = recording::PlainFile::Open(XENOSCOPE_TEST_DATA "/small.xeno/trace.xentrace");
    ASSERT_TRUE(plain_file.ok()) << plain_file.status();
    auto file = MappedFile::Open(plain_file->path());
    ASSERT_TRUE(file.ok()) << file.status();
    file_.emplace(*std::move(file));
    auto trace = trace::TraceFile::FromBytes(file_->bytes(), "small");
    ASSERT_TRUE(trace.ok()) << trace.status();
    trace_.emplace(*std::move(trace));
    Timeline timeline(pieces_);
    trace::OrderedStream stream = trace_->Stream();
    while (const Item* item = stream.Next()) timeline.Take(*item);
    timeline.Finish();
    double all = 0;
    for (const Segment& piece_of : pieces_.all) {
      const auto length = static_cast<double>(piece_of.range.Length());
      truth_[piece_of.vcpu.domain] += length;
      all += length;
      sampled_.begin = std::min(sampled_.begin, piece_of.range.begin);
      sampled_.end = std::max(sampled_.end, piece_of.range.end);
    }
    for (auto& [domain, share] : truth_) share /= all;
  }

  // Samples at random instants, so many a second of what runs, as drains every 5 ms find them.
  Drawn Draw(uint64_t seed, double hz) const {
    std::mt19937_64 random(seed);
    std::exponential_distribution<double> apart(hz / (1000 * kMs));
    std::map<std::pair<Cycles, VcpuRef>, std::vector<Sample>> drains;
    double next = apart(random);
    for (const Segment& piece : pieces_.all) {
      double at = next;
      const auto length = static_cast<double>(piece.range.Length());
      while (at < length) {
        Sample sample;
        sample.vcpu = piece.vcpu;
        sample.mode = piece.kind == SegmentKind::kUndivided || piece.kind == SegmentKind::kGuest
                          ? Mode::kKernel
                          : Mode::kXen;
        const Cycles drain = (piece.range.begin.value + static_cast<Cycles>(at)) / kDrains;
        sample.when = {Tsc{drain * kDrains}, Tsc{(drain + 1) * kDrains}};
        drains[{drain, piece.vcpu}].push_back(sample);
        at += apart(random);
      }
      next = at - length;
    }
    Drawn drawn;
    for (const auto& [drain, samples] : drains) {
      drawn.samples.insert(drawn.samples.end(), samples.begin(), samples.end());
    }
    return drawn;
  }

  // The profile by domain of the samples with what `loser` leaves of the trace.
  ProfileResult With(Loser* loser, Drawn samples) {
    Nameless names;
    Profile profile({{Dimension::kDomain}, true, 0, false, {}}, names);
    PlacingOptions options;
    options.sampled = sampled_;
    options.longest_bracket = kDrains;
    Placer placer(options, samples, profile);
    trace::OrderedStream stream = trace_->Stream();
    std::optional<Item> loss;
    while (const Item* item = stream.Next()) {
      if (loser == nullptr || item->kind != ItemKind::kRecord) {
        placer.Take(*item);
        continue;
      }
      if (loser->Loses(item->record.tsc)) {
        if (!loss) {
          loss = *item;
          loss->kind = ItemKind::kLossBegin;
          loss->first_lost = item->record.tsc;
          loss->lost = 0;
          placer.Take(*loss);
        }
        ++loss->lost;
        continue;
      }
      if (loss) {
        loss->kind = ItemKind::kLost;
        loss->record.tsc = item->record.tsc;
        loss->current = item->current;
        placer.Take(*loss);
        loss.reset();
      }
      placer.Take(*item);
    }
    EXPECT_TRUE(placer.Finish().ok());
    counts_ = placer.counts();
    auto result = profile.Finish();
    EXPECT_TRUE(result.ok()) << result.status();
    return *std::move(result);
  }

  std::optional<MappedFile> file_;
  std::optional<trace::TraceFile> trace_;
  Pieces pieces_;
  TscRange sampled_{Tsc{~uint64_t{0}}, Tsc{0}};
  std::map<DomainId, double> truth_;
  PlacingCounts counts_;
};

// What came of several recordings of the same time, each of which has lost other parts of its
// trace.
struct Outcomes {
  int intervals = 0;  // of a domain's share, in a recording
  int held = 0;       // of these, with the true share in them
  double width = 0;   // of all of them
  std::map<DomainId, double> errors;
  double lost = 0;  // parts of the time
  uint64_t samples = 0;
  uint64_t unplaced = 0;
};

class LostTimeShares : public LostTime {
 protected:
  // Writes the figures of docs/accuracy.md to the file of --gtest_output.
  static void Record(const Outcomes& all, int recordings) {
    double error = 0;
    for (const auto& [domain, sum] : all.errors) {
      error = std::max(error, std::abs(sum / recordings));
    }
    RecordProperty("lost", std::to_string(all.lost / recordings));
    RecordProperty("held", std::to_string(all.held) + " of " + std::to_string(all.intervals));
    RecordProperty("width", std::to_string(all.width / all.intervals));
    RecordProperty("error", std::to_string(error));
  }

  template <typename MakeLoser>
  void Check(MakeLoser make_loser) {
    constexpr int kRecordings = 40;
    constexpr double kHz = 500;
    Outcomes all;
    for (uint64_t seed = 1; seed <= kRecordings; ++seed) {
      auto loser = make_loser(seed);
      const ProfileResult result = With(&loser, Draw(seed, kHz));
      for (const ProfileRow& row : result.domains) {
        const double truth = truth_[row.domain];
        ++all.intervals;
        all.held += static_cast<int>(row.interval.low <= truth && truth <= row.interval.high);
        all.width += row.interval.high - row.interval.low;
        all.errors[row.domain] += row.share - truth;
      }
      all.lost += static_cast<double>(counts_.lost_time) / static_cast<double>(sampled_.Length());
      all.samples += counts_.samples;
      all.unplaced += counts_.Unplaced();
    }
    Record(all, kRecordings);
    EXPECT_GT(all.lost / kRecordings, 0.4);
    EXPECT_LT(all.unplaced, all.samples / 100);
    ASSERT_EQ(all.intervals, 3 * kRecordings);
    EXPECT_GE(all.held, 0.95 * all.intervals);
    // Those of as many independent samples are 0.022 wide.
    EXPECT_LT(all.width / all.intervals, 0.04);
    for (const auto& [domain, sum] : all.errors) {
      EXPECT_NEAR(sum / kRecordings, 0, 0.005) << ToString(domain);
    }
  }
};

TEST_F(LostTimeShares, CoverTruthWithRandomLoss) {
  Check([](uint64_t seed) { return AtRandom(seed, 100, 300); });
}

TEST_F(LostTimeShares, CoverTruthWithShortLosses) {
  Check([](uint64_t seed) { return AtRandom(seed, 3, 10); });
}

TEST_F(LostTimeShares, CoverTruthWithFullBuffers) {
  Check([](uint64_t seed) { return Buffer(seed, 1000, 300); });
}

TEST_F(LostTimeShares, CoverTruthWithSmallFullBuffers) {
  Check([](uint64_t seed) { return Buffer(seed, 500, 100); });
}

// But for time without a sample: that of switches from PV domains, whose samples here are none of
// Xen's, to the HVM guest.
TEST_F(LostTimeShares, AreExactWithoutLoss) {
  const ProfileResult result = With(nullptr, Draw(1, 500));
  const double unsampled = result.unsampled_cycles / result.cycles;
  EXPECT_LT(unsampled, 0.001);
  for (const ProfileRow& row : result.domains) {
    EXPECT_NEAR(row.share, truth_[row.domain], unsampled + 1e-9);
    EXPECT_EQ(row.interval.low, row.interval.high);
  }
}

}  // namespace
}  // namespace xenoscope::correlate
