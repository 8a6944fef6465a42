#include "sampler/collector.h"

#include <algorithm>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

// Limit in bytes of drains that are handed on as one batch, to be written at once.
constexpr size_t kBatchBytes = size_t{256} << 10;

}  // namespace

absl::Status Collector::Start() {
  XENOSCOPE_RETURN_IF_ERROR(source_->Start());
  last_drain_ = Clock::now();
  is_running_ = true;
  thread_ = std::thread(&Collector::Run, this);
  return absl::OkStatus();
}

void Collector::BeginStop() {
  {
    const Lock lock(mutex_);
    end_requested_ = stop_requested_ = true;
  }
  wake_.notify_one();
}

absl::Status Collector::Stop() {
  BeginStop();
  thread_.join();
  const Lock lock(mutex_);
  return stop_status_;
}

void Collector::End() {
  {
    const Lock lock(mutex_);
    end_requested_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Collector::RunOnThread(std::function<void(Source&)> task) {
  Lock lock(mutex_);
  if (!is_running_) return task(*source_);
  task_ = std::move(task);
  wake_.notify_one();
  task_done_.wait(lock, [this] { return !task_; });
}

Collector::Batches Collector::Take() {
  const Lock lock(mutex_);
  if (!HasRoom()) wake_.notify_one();
  queued_ = 0;
  return std::exchange(batches_, {});
}

absl::Status Collector::status() const {
  const Lock lock(mutex_);
  return error_;
}

recording::DrainInfo Collector::Drains() const {
  constexpr double kP99 = 0.99;
  const Lock lock(mutex_);
  return {.count = intervals_.total(),
          .p50_ns = intervals_.Percentile(0.5),
          .p99_ns = intervals_.Percentile(kP99),
          .most_ns = intervals_.max(),
          .held_ns = static_cast<uint64_t>(std::chrono::nanoseconds(blocked_time_).count()),
          .most_waiting_bytes = peak_queued_};
}

void Collector::Run() {
  Lock lock(mutex_);
  while (error_.ok() && WaitUntilDue(lock)) Drain(lock);
  // A source that failed is stopped by Stop, and runs tasks until then.
  while (!end_requested_) {
    RunTask();
    wake_.wait(lock, [this] { return task_ || end_requested_; });
  }
  if (stop_requested_) StopSource(lock);
  RunTask();  // the task may have come just now
  is_running_ = false;
}

bool Collector::WaitUntilDue(Lock& lock) {
  while (true) {
    RunTask();
    if (end_requested_) return false;
    const Clock::time_point due = source_->Due();
    if (Clock::now() < due) {
      wake_.wait_until(lock, due);
    } else if (HasRoom()) {
      return true;
    } else {
      WaitForRoom(lock);
    }
  }
}

void Collector::WaitForRoom(Lock& lock) {
  const Clock::time_point since = Clock::now();
  wake_.wait(lock, [this] { return HasRoom() || task_ || end_requested_; });
  blocked_time_ += Clock::now() - since;
}

void Collector::RunTask() {
  if (!task_) return;
  task_(*source_);
  task_ = nullptr;
  task_done_.notify_one();
}

void Collector::Drain(Lock& lock) {
  const Clock::time_point now = Clock::now();
  const std::chrono::nanoseconds interval = now - last_drain_;
  intervals_.Add(static_cast<uint64_t>(interval.count()), 1);
  last_drain_ = now;
  lock.unlock();
  absl::Status status = source_->Collect(writer_);
  std::vector<std::byte> chunks = writer_.Take();
  lock.lock();
  error_ = std::move(status);
  Add(std::move(chunks));
}

void Collector::StopSource(Lock& lock) {
  lock.unlock();
  absl::Status status = source_->Stop(writer_);
  std::vector<std::byte> chunks = writer_.Take();
  lock.lock();
  stop_status_ = std::move(status);
  Add(std::move(chunks));
}

void Collector::Add(std::vector<std::byte> chunks) {
  if (chunks.empty()) return;
  queued_ += chunks.size();
  peak_queued_ = std::max(peak_queued_, queued_);
  if (batches_.empty() || batches_.back().size() + chunks.size() > kBatchBytes) {
    batches_.push_back(std::move(chunks));
  } else {
    batches_.back().insert(batches_.back().end(), chunks.begin(), chunks.end());
  }
}

}  // namespace xenoscope::sampler
