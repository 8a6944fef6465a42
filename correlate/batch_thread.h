// Gives batches, in their order, to a function on a thread of its own. Their number bounds how far
// the thread that fills them may be ahead: then it waits.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace xenoscope::correlate {

// The thread sleeps until it has `kAtOnce` batches, or the last one, and the caller, where it
// waits, until so many are free: where batches are soon delivered, a switch between the two for
// each of them would cost more.
template <typename Batch, size_t kBatches, size_t kAtOnce = 1>
class BatchThread {
 public:
  // `deliver` is called on the other thread, and leaves the batch to be filled again.
  explicit BatchThread(std::function<void(Batch&)> deliver) : deliver_(std::move(deliver)) {
    for (size_t i = 0; i < kBatches; ++i) free_.push_back(&batches_[i]);
    TakeFree();
    thread_ = std::thread([this] { Work(); });
  }
  BatchThread(const BatchThread&) = delete;
  BatchThread& operator=(const BatchThread&) = delete;
  BatchThread(BatchThread&&) = delete;
  BatchThread& operator=(BatchThread&&) = delete;
  ~BatchThread() { Finish(); }

  // Returns the batch that the caller fills.
  [[nodiscard]] Batch& Current() { return *current_; }
  // Submits that batch, and waits until there is another one to fill.
  void Submit() {
    std::unique_lock lock(mutex_);
    filled_.push_back(current_);
    if (filled_.size() >= kAtOnce) changed_.notify_one();
    if (free_.empty()) {
      changed_.wait(lock, [this] { return free_.size() >= kAtOnce; });
    }
    TakeFree();
  }
  // Submits that batch as the last one, and returns when all were delivered.
  void Finish() {
    if (!thread_.joinable()) return;
    {
      const std::scoped_lock lock(mutex_);
      filled_.push_back(current_);
      ended_ = true;
      changed_.notify_one();
    }
    thread_.join();
  }

 private:
  // Takes the batch that became free last, which the processor's caches may still have.
  void TakeFree() {
    current_ = free_.back();
    free_.pop_back();
  }
  void Work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      if (filled_.empty()) {
        changed_.wait(lock, [this] { return filled_.size() >= kAtOnce || ended_; });
        if (filled_.empty()) return;
      }
      Batch* const batch = filled_.front();
      filled_.pop_front();
      lock.unlock();
      deliver_(*batch);
      lock.lock();
      free_.push_back(batch);
      if (free_.size() == kAtOnce) changed_.notify_one();
    }
  }

  static_assert(kBatches > kAtOnce);

  std::function<void(Batch&)> deliver_;
  std::unique_ptr<Batch[]> batches_ = std::make_unique<Batch[]>(kBatches);
  Batch* current_ = nullptr;  // the caller's
  std::mutex mutex_;
  std::condition_variable changed_;
  // Under the mutex: the batches that neither the caller nor thread_ has now.
  std::deque<Batch*> filled_;
  std::vector<Batch*> free_;
  bool ended_ = false;  // the last batch has been submitted
  std::thread thread_;
};

}  // namespace xenoscope::correlate
