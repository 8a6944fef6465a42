#include "sampler/collector.h"

#include <algorithm>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

// Drains that come together are handed on as one piece up to this size, to be written at once.
constexpr size_t kPiece = size_t{256} << 10;

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
    is_to_end_ = is_to_stop_ = true;
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
    is_to_end_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Collector::Ask(std::function<void(Source&)> errand) {
  Lock lock(mutex_);
  if (!is_running_) return errand(*source_);
  errand_ = std::move(errand);
  wake_.notify_one();
  errand_done_.wait(lock, [this] { return !errand_; });
}

Collector::Pieces Collector::Take() {
  const Lock lock(mutex_);
  if (!HasRoom()) wake_.notify_one();
  waiting_ = 0;
  return std::exchange(pieces_, {});
}

absl::Status Collector::status() const {
  const Lock lock(mutex_);
  return error_;
}

recording::DrainInfo Collector::Drains() const {
  constexpr double kP99 = 0.99;
  const Lock lock(mutex_);
  return {intervals_.total(),
          intervals_.Percentile(0.5),
          intervals_.Percentile(kP99),
          intervals_.most(),
          static_cast<uint64_t>(std::chrono::nanoseconds(held_).count()),
          most_waited_};
}

void Collector::Run() {
  Lock lock(mutex_);
  while (error_.ok() && WaitUntilDue(lock)) Drain(lock);
  // A source that failed is stopped when that is asked for, and does errands until then.
  while (!is_to_end_) {
    DoErrand();
    wake_.wait(lock, [this] { return errand_ || is_to_end_; });
  }
  if (is_to_stop_) StopSource(lock);
  DoErrand();  // that was asked for just now
  is_running_ = false;
}

bool Collector::WaitUntilDue(Lock& lock) {
  while (true) {
    DoErrand();
    if (is_to_end_) return false;
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
  wake_.wait(lock, [this] { return HasRoom() || errand_ || is_to_end_; });
  held_ += Clock::now() - since;
}

void Collector::DoErrand() {
  if (!errand_) return;
  errand_(*source_);
  errand_ = nullptr;
  errand_done_.notify_one();
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
  waiting_ += chunks.size();
  most_waited_ = std::max(most_waited_, waiting_);
  if (pieces_.empty() || pieces_.back().size() + chunks.size() > kPiece) {
    pieces_.push_back(std::move(chunks));
  } else {
    pieces_.back().insert(pieces_.back().end(), chunks.begin(), chunks.end());
  }
}

}  // namespace xenoscope::sampler
