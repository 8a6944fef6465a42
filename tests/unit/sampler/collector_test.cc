#include "sampler/collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <numeric>
#include <semaphore>
#include <span>
#include <thread>

#include "base/bytes.h"
#include "recording/sample_format.h"
#include "recording/sample_reader.h"

namespace xenoscope::sampler {
namespace {

using std::chrono::steady_clock;
using testing::ElementsAreArray;
using testing::IsEmpty;

// The test's view of a source that a collector owns.
struct Script {
  std::counting_semaphore<> drained{0};  // grows by one after each drain
  std::atomic<int> stuck_at = -1;        // the drain that waits until the test lets it go
  std::promise<void> is_stuck;
  std::promise<void> let_go;
  int fails_at = -1;  // the drain that fails, after its sample
  absl::Status start_status;
  std::atomic<bool> stops_late = false;  // whether Stop waits for the test
  std::promise<void> may_stop;

  // Whether a thread is in the source.
  std::atomic<bool> busy = false;
  std::atomic<bool> met_another = false;
  std::thread::id collects;
  bool stopped = false;
};

// A source that is always due; each drain finds one sample, whose address is the drain's number.
class CountingSource final : public Source {
 public:
  explicit CountingSource(Script& script) : script_(script) {}

  recording::SourceInfo Info() const override { return {"counting", "", 0, 0}; }
  std::vector<recording::EventInfo> Events() const override { return {}; }
  recording::Role RoleOf(DomainId /*domain*/) const override { return recording::Role::kNone; }
  absl::Status Start() override { return script_.start_status; }
  steady_clock::time_point Due() const override { return steady_clock::time_point::min(); }
  absl::Status Collect(recording::SampleWriter& writer) override {
    const Alone alone(script_);
    script_.collects = std::this_thread::get_id();
    if (drains_ == script_.stuck_at) {
      script_.is_stuck.set_value();
      script_.let_go.get_future().wait();
    }
    const bool fails = drains_ == script_.fails_at;
    Give(writer);
    script_.drained.release();
    return fails ? absl::UnavailableError("the source is gone") : absl::OkStatus();
  }
  absl::Status OnDomainCreated(const recording::DomainInfo& /*domain*/) override {
    const Alone alone(script_);
    return absl::OkStatus();
  }
  absl::Status Stop(recording::SampleWriter& writer) override {
    const Alone alone(script_);
    if (script_.stops_late) script_.may_stop.get_future().wait();
    script_.stopped = true;
    Give(writer);
    return absl::OkStatus();
  }
  absl::Status Close() override { return absl::OkStatus(); }
  TscRange Sampled() const override { return {}; }
  std::vector<recording::StreamInfo> Streams() const override { return {}; }

 private:
  // Marks a thread that is in the source, and notices another one there.
  class Alone {
   public:
    explicit Alone(Script& script) : script_(script) {
      if (script_.busy.exchange(true)) script_.met_another = true;
    }
    Alone(const Alone&) = delete;
    Alone& operator=(const Alone&) = delete;
    ~Alone() { script_.busy = false; }

   private:
    Script& script_;
  };

  void Give(recording::SampleWriter& writer) {
    recording::Entry entry;
    entry.address = static_cast<Address>(drains_++);
    writer.Append({DomainId{1}, VcpuId{0}}, {Tsc{1}, Tsc{2}, Tsc{3}}, {&entry, 1});
  }

  Script& script_;
  int drains_ = 0;
};

constexpr size_t kOneDrain = sizeof(recording::ChunkHeader) + sizeof(recording::Entry);

class CollectorTest : public testing::Test {
 protected:
  std::unique_ptr<Collector> Made(size_t max_queued = Collector::kMaxQueuedBytes) {
    return std::make_unique<Collector>(std::make_unique<CountingSource>(script_), max_queued);
  }
  std::unique_ptr<Collector> Started(size_t max_queued = Collector::kMaxQueuedBytes) {
    auto collector = Made(max_queued);
    EXPECT_TRUE(collector->Start().ok());
    return collector;
  }
  void WaitForDrains(int count) {
    for (int i = 0; i < count; ++i) script_.drained.acquire();
  }
  void Take(Collector& collector) {
    for (const std::vector<std::byte>& batch : collector.Take()) {
      file_.insert(file_.end(), batch.begin(), batch.end());
    }
  }
  // Returns the samples of all that was taken, in their order.
  std::vector<Address> Addresses() {
    const recording::FileHeader header;
    const Bytes bytes = std::as_bytes(std::span(&header, 1));
    file_.insert(file_.begin(), bytes.begin(), bytes.end());
    auto reader = recording::SampleReader::Open(file_, 1);
    std::vector<Address> addresses;
    while (auto sample = reader->Next()) addresses.push_back(sample->address);
    EXPECT_FALSE(reader->damage().Any());
    return addresses;
  }
  static std::vector<Address> UpTo(size_t count) {
    std::vector<Address> numbers(count);
    std::iota(numbers.begin(), numbers.end(), 0);
    return numbers;
  }

  Script script_;
  std::vector<std::byte> file_;
};

TEST_F(CollectorTest, DrainsWhileBatchesAreNotTaken) {
  const auto collector = Started();
  WaitForDrains(1000);
  ASSERT_TRUE(collector->Stop().ok());
  EXPECT_GE(collector->Drains().count, 1000);
  EXPECT_EQ(collector->Drains().held_ns, 0);
  Take(*collector);
  // The source's last samples are among them.
  EXPECT_THAT(Addresses(), ElementsAreArray(UpTo(collector->Drains().count + 1)));
  EXPECT_EQ(collector->Drains().most_waiting_bytes, kOneDrain * (collector->Drains().count + 1));
}

TEST_F(CollectorTest, KeepsOrderOfSamples) {
  const auto collector = Started();
  for (int i = 0; i < 50; ++i) {
    WaitForDrains(3);
    Take(*collector);
  }
  ASSERT_TRUE(collector->Stop().ok());
  Take(*collector);
  EXPECT_THAT(Addresses(), ElementsAreArray(UpTo(collector->Drains().count + 1)));
  EXPECT_THAT(collector->Take(), IsEmpty());
}

TEST_F(CollectorTest, JoinsDrainsToBatches) {
  const auto collector = Started();
  WaitForDrains(1000);
  ASSERT_TRUE(collector->Stop().ok());
  EXPECT_LE(collector->Take().size(), 1 + collector->Drains().most_waiting_bytes / (100 << 10));
}

TEST_F(CollectorTest, BatchesCanBeTakenDuringADrain) {
  script_.stuck_at = 2;
  const auto collector = Started();
  script_.is_stuck.get_future().wait();
  Take(*collector);
  script_.let_go.set_value();
  EXPECT_THAT(Addresses(), ElementsAreArray(UpTo(2)));
}

TEST_F(CollectorTest, StopsDrainingAtMemoryLimit) {
  constexpr size_t kMaxQueued = 10 * kOneDrain;
  const auto collector = Started(kMaxQueued);
  WaitForDrains(11);
  // It runs tasks, and collects nothing.
  for (int i = 0; i < 100; ++i) collector->RunOnThread([](const Source& /*source*/) {});
  EXPECT_EQ(collector->Drains().count, 11);
  EXPECT_GT(collector->Drains().held_ns, 0);
  Take(*collector);
  WaitForDrains(11);
  ASSERT_TRUE(collector->Stop().ok());
  Take(*collector);
  EXPECT_THAT(Addresses(), ElementsAreArray(UpTo(23)));
  EXPECT_LE(collector->Drains().most_waiting_bytes, kMaxQueued + 2 * kOneDrain);
}

TEST_F(CollectorTest, RunsTasksBetweenDrains) {
  const auto collector = Started();
  WaitForDrains(1);
  for (int i = 0; i < 100; ++i) {
    collector->RunOnThread([this](Source& source) {
      EXPECT_TRUE(source.OnDomainCreated({}).ok());
      EXPECT_EQ(script_.collects, std::this_thread::get_id());
    });
  }
  ASSERT_TRUE(collector->Stop().ok());
  EXPECT_FALSE(script_.met_another);
}

TEST_F(CollectorTest, RunsTasksWithoutThread) {
  const auto collector = Made();
  int asked = 0;
  collector->RunOnThread([&asked](const Source& /*source*/) { ++asked; });
  ASSERT_TRUE(collector->Start().ok());
  ASSERT_TRUE(collector->Stop().ok());
  collector->RunOnThread([&asked](const Source& /*source*/) { ++asked; });
  EXPECT_EQ(asked, 2);
}

TEST_F(CollectorTest, KeepsSamplesBeforeError) {
  script_.fails_at = 3;
  const auto collector = Started();
  WaitForDrains(4);
  while (collector->status().ok()) std::this_thread::yield();
  EXPECT_EQ(collector->status().message(), "the source is gone");
  collector->RunOnThread([](Source& source) { EXPECT_TRUE(source.OnDomainCreated({}).ok()); });
  EXPECT_TRUE(collector->Stop().ok());
  EXPECT_TRUE(script_.stopped);
  Take(*collector);
  EXPECT_THAT(Addresses(), ElementsAreArray(UpTo(5)));
}

TEST_F(CollectorTest, StopWaitsForCurrentDrain) {
  script_.stuck_at = 0;
  const auto collector = Started();
  script_.is_stuck.get_future().wait();
  std::thread stops([&collector] { EXPECT_TRUE(collector->Stop().ok()); });
  script_.let_go.set_value();
  stops.join();
  EXPECT_FALSE(script_.met_another);
  EXPECT_TRUE(script_.stopped);
}

// So sources that wait for guests can stop in parallel.
TEST_F(CollectorTest, StopNeedNotWait) {
  script_.stops_late = true;
  const auto collector = Started();
  WaitForDrains(1);
  collector->BeginStop();
  EXPECT_FALSE(script_.stopped);
  script_.may_stop.set_value();
  EXPECT_TRUE(collector->Stop().ok());
  EXPECT_TRUE(script_.stopped);
  EXPECT_FALSE(script_.met_another);
  Take(*collector);
  EXPECT_THAT(Addresses(), ElementsAreArray(UpTo(collector->Drains().count + 1)));
}

TEST_F(CollectorTest, DoesNotDrainSourceThatDidNotStart) {
  script_.start_status = absl::PermissionDeniedError("no");
  const auto collector = Made();
  EXPECT_EQ(collector->Start().message(), "no");
  EXPECT_FALSE(collector->started());
  EXPECT_EQ(collector->Drains().count, 0);
}

TEST_F(CollectorTest, DestructorStopsThread) {
  { const auto collector = Started(); }
  EXPECT_FALSE(script_.stopped);
}

}  // namespace
}  // namespace xenoscope::sampler
