// Passes batches from the thread that fills them to the thread that takes them. A ring of them
// bounds how far the first thread may be ahead: then it waits.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace xenoscope::correlate {

template <typename Batch, size_t kBatches>
class BatchRing {
 public:
  // Returns the batch that the first thread fills.
  [[nodiscard]] Batch& Current() { return batches_[filled_ % kBatches]; }
  // Submits that batch, and waits until there is another one to fill.
  void Submit() {
    std::unique_lock lock(mutex_);
    ++filled_;
    changed_.notify_one();
    changed_.wait(lock, [this] { return filled_ - taken_ < kBatches; });
  }

  // Waits for the next batch that was submitted, and returns it: it is the second thread's until
  // Release.
  [[nodiscard]] Batch& Next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return taken_ < filled_; });
    return batches_[taken_ % kBatches];
  }
  // Gives the batch back, to be filled again.
  void Release() {
    const std::scoped_lock lock(mutex_);
    ++taken_;
    changed_.notify_one();
  }

 private:
  // Batch n is the first thread's while n == filled_, then the second one's until it is taken.
  std::array<Batch, kBatches> batches_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t filled_ = 0;  // written under the mutex, by the first thread only
  uint64_t taken_ = 0;   // written under the mutex, by the second thread only
};

}  // namespace xenoscope::correlate
