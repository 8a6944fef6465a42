// Gives batches, in their order, to a function on a thread of its own. A ring of them bounds how
// far the thread that fills them may be ahead: then it waits.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>

namespace xenoscope::correlate {

template <typename Batch, size_t kBatches>
class BatchThread {
 public:
  // `deliver` is called on the other thread, and leaves the batch to be filled again.
  explicit BatchThread(std::function<void(Batch&)> deliver)
      : deliver_(std::move(deliver)), thread_([this] { Work(); }) {}
  BatchThread(const BatchThread&) = delete;
  BatchThread& operator=(const BatchThread&) = delete;
  BatchThread(BatchThread&&) = delete;
  BatchThread& operator=(BatchThread&&) = delete;
  ~BatchThread() { Finish(); }

  // Returns the batch that the caller fills.
  [[nodiscard]] Batch& Current() { return batches_[filled_ % kBatches]; }
  // Submits that batch, and waits until there is another one to fill.
  void Submit() {
    std::unique_lock lock(mutex_);
    ++filled_;
    changed_.notify_one();
    changed_.wait(lock, [this] { return filled_ - delivered_ < kBatches; });
  }
  // Submits that batch as the last one, and returns when all were delivered.
  void Finish() {
    if (!thread_.joinable()) return;
    {
      const std::scoped_lock lock(mutex_);
      last_ = ++filled_;
      changed_.notify_one();
    }
    thread_.join();
  }

 private:
  void Work() {
    std::unique_lock lock(mutex_);
    while (delivered_ != last_) {
      changed_.wait(lock, [this] { return delivered_ < filled_; });
      lock.unlock();
      deliver_(batches_[delivered_ % kBatches]);
      lock.lock();
      ++delivered_;
      changed_.notify_one();
    }
  }

  std::function<void(Batch&)> deliver_;
  // Batch n is the caller's while n == filled_, then thread_'s until it is delivered.
  std::array<Batch, kBatches> batches_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t filled_ = 0;           // written under the mutex, by the caller's thread only
  uint64_t delivered_ = 0;        // written under the mutex, by thread_ only
  uint64_t last_ = ~uint64_t{0};  // how many there are in all, once that is known
  std::thread thread_;
};

}  // namespace xenoscope::correlate
