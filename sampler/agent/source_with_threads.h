// A guest's source of samples, and its kernel's events of threads beside them: what an agent works
// with if it was asked for both.
#pragma once

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "sampler/source.h"

namespace xenoscope::sampler {

class SourceWithThreads final : public Source {
 public:
  // What it says of itself is what `samples` says; `threads` adds its accounts, and its notes as
  // problems.
  SourceWithThreads(std::unique_ptr<Source> samples, std::unique_ptr<Source> threads)
      : samples_(std::move(samples)), threads_(std::move(threads)) {}

  [[nodiscard]] recording::SourceInfo Info() const override {
    recording::SourceInfo info = samples_->Info();
    info.problems = threads_->Notes();
    return info;
  }
  [[nodiscard]] std::vector<recording::EventInfo> Events() const override {
    return samples_->Events();
  }
  [[nodiscard]] recording::Role RoleOf(DomainId domain) const override {
    return samples_->RoleOf(domain);
  }
  absl::StatusOr<bool> Enlist() override { return samples_->Enlist(); }
  absl::Status PrepareStart() override {
    return BothOf([](Source& source) { return source.PrepareStart(); });
  }
  // Threads come first, so that every sample has one.
  absl::Status Start() override {
    absl::Status status = threads_->Start();
    if (status.ok()) status = samples_->Start();
    return status;
  }
  [[nodiscard]] std::chrono::steady_clock::time_point Due() const override {
    return std::min(samples_->Due(), threads_->Due());
  }
  // Samples come first: only threads can wait where the writer has no room.
  absl::Status Collect(recording::SampleWriter& writer) override {
    if (stopped_) return threads_->Collect(writer);
    return BothOf([&writer](Source& source) { return source.Collect(writer); });
  }
  [[nodiscard]] bool HasMore() const override { return threads_->HasMore(); }
  absl::Status OnDomainCreated(const recording::DomainInfo& domain) override {
    return samples_->OnDomainCreated(domain);
  }
  // Threads come first, as the end of samples may take long. A recorder takes no samples that are
  // later than its request to stop.
  absl::Status Stop(recording::SampleWriter& writer) override {
    stopped_ = true;
    absl::Status status = threads_->Stop(writer);
    status.Update(samples_->Stop(writer));
    return status;
  }
  absl::Status Close() override {
    return BothOf([](Source& source) { return source.Close(); });
  }
  [[nodiscard]] TscRange Sampled() const override { return samples_->Sampled(); }
  [[nodiscard]] std::vector<recording::StreamInfo> Streams() const override {
    return samples_->Streams();
  }
  [[nodiscard]] std::vector<recording::KernelTraceInfo> KernelTraces() const override {
    return threads_->KernelTraces();
  }

 private:
  // Returns the first error; the other source is called all the same.
  template <typename Call>
  absl::Status BothOf(Call call) {
    absl::Status status = call(*samples_);
    status.Update(call(*threads_));
    return status;
  }

  std::unique_ptr<Source> samples_;
  std::unique_ptr<Source> threads_;
  bool stopped_ = false;
};

}  // namespace xenoscope::sampler
