#include "sampler/agent/source_with_threads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

using std::chrono::steady_clock;
using testing::ElementsAre;

// A source that notes what is asked of it.
class NotingSource final : public Source {
 public:
  NotingSource(std::string name, std::vector<std::string>& calls, steady_clock::time_point due)
      : name_(std::move(name)), calls_(calls), due_(due) {}

  recording::SourceInfo Info() const override { return {name_, "", 0, 0}; }
  std::vector<recording::EventInfo> Events() const override {
    recording::EventInfo event;
    event.name = name_;
    return {event};
  }
  recording::Role RoleOf(DomainId /*domain*/) const override { return recording::Role::kActive; }
  absl::Status PrepareStart() override { return Note("prepare"); }
  absl::Status Start() override { return Note("start"); }
  steady_clock::time_point Due() const override { return due_; }
  absl::Status Collect(recording::SampleWriter& /*writer*/) override { return Note("collect"); }
  absl::Status OnDomainCreated(const recording::DomainInfo& /*domain*/) override {
    return Note("domain");
  }
  absl::Status Stop(recording::SampleWriter& /*writer*/) override { return Note("stop"); }
  absl::Status Close() override { return Note("close"); }
  TscRange Sampled() const override { return {}; }
  std::vector<recording::StreamInfo> Streams() const override {
    recording::StreamInfo stream;
    stream.source = name_;
    return {stream};
  }
  std::vector<recording::KernelTraceInfo> KernelTraces() const override {
    return {{.source = name_, .vcpu = {}, .read = 0, .lost = 0}};
  }

  bool HasMore() const override { return has_more; }

  bool fails = false;
  bool has_more = false;

 private:
  absl::Status Note(const std::string& what) {
    calls_.push_back(name_ + " " + what);
    return fails ? InvalidError("{} cannot {}", name_, what) : absl::OkStatus();
  }

  std::string name_;
  std::vector<std::string>& calls_;
  steady_clock::time_point due_;
};

class SourceWithThreadsTest : public testing::Test {
 protected:
  std::vector<std::string> calls_;
  std::unique_ptr<NotingSource> samples_ = std::make_unique<NotingSource>(
      "perf", calls_, steady_clock::time_point(std::chrono::seconds(5)));
  std::unique_ptr<NotingSource> threads_ = std::make_unique<NotingSource>(
      "ftrace", calls_, steady_clock::time_point(std::chrono::seconds(3)));
  recording::SampleWriter writer_ = recording::SampleWriter::InMemory();
};

TEST_F(SourceWithThreadsTest, CallsBoth) {
  SourceWithThreads both(std::move(samples_), std::move(threads_));
  EXPECT_TRUE(both.PrepareStart().ok());
  EXPECT_TRUE(both.Start().ok());
  EXPECT_TRUE(both.Collect(writer_).ok());
  EXPECT_TRUE(both.Stop(writer_).ok());
  EXPECT_TRUE(both.Close().ok());
  EXPECT_THAT(calls_, ElementsAre("perf prepare", "ftrace prepare", "ftrace start", "perf start",
                                  "perf collect", "ftrace collect", "ftrace stop", "perf stop",
                                  "perf close", "ftrace close"));
}

TEST_F(SourceWithThreadsTest, IsTheSourceOfSamplesWithTheOthersAccounts) {
  const SourceWithThreads both(std::move(samples_), std::move(threads_));
  EXPECT_EQ(both.Info().name, "perf");
  EXPECT_EQ(both.Events().at(0).name, "perf");
  EXPECT_EQ(both.Streams().at(0).source, "perf");
  EXPECT_EQ(both.KernelTraces().at(0).source, "ftrace");
  EXPECT_EQ(both.RoleOf(kDom0), recording::Role::kActive);
  EXPECT_EQ(both.Due(), steady_clock::time_point(std::chrono::seconds(3)));
}

TEST_F(SourceWithThreadsTest, DrainsTheOtherOneThoughOneFails) {
  samples_->fails = true;
  SourceWithThreads both(std::move(samples_), std::move(threads_));
  EXPECT_EQ(Message(both.Collect(writer_)), "perf cannot collect");
  EXPECT_EQ(Message(both.Stop(writer_)), "perf cannot stop");
  EXPECT_EQ(Message(both.Close()), "perf cannot close");
  EXPECT_THAT(calls_, ElementsAre("perf collect", "ftrace collect", "ftrace stop", "perf stop",
                                  "perf close", "ftrace close"));
}

// What a source of threads could not hand on comes after the end of samples.
TEST_F(SourceWithThreadsTest, GoesOnWithThreadsAfterTheEnd) {
  NotingSource* const threads = threads_.get();
  SourceWithThreads both(std::move(samples_), std::move(threads_));
  EXPECT_FALSE(both.HasMore());
  threads->has_more = true;
  EXPECT_TRUE(both.HasMore());
  EXPECT_TRUE(both.Stop(writer_).ok());
  EXPECT_TRUE(both.Collect(writer_).ok());
  EXPECT_THAT(calls_, ElementsAre("ftrace stop", "perf stop", "ftrace collect"));
}

TEST_F(SourceWithThreadsTest, TakesNoSamplesWithoutThreads) {
  threads_->fails = true;
  SourceWithThreads both(std::move(samples_), std::move(threads_));
  EXPECT_EQ(Message(both.Start()), "ftrace cannot start");
  EXPECT_THAT(calls_, ElementsAre("ftrace start"));
}

}  // namespace
}  // namespace xenoscope::sampler
