// Items from one thread to one other, in order, a batch at a time, in bounded memory: the giver
// waits when the taker is kBatches behind.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <span>
#include <vector>

#include "trace/record.h"

namespace xenoscope::analysis {

class Handover {
 public:
  // The giver's side.
  void Give(const trace::Item& item) {
    std::vector<trace::Item>& batch = batches_[giving_ % kBatches];
    batch.push_back(item);
    if (batch.size() == kItems) Send();
  }
  // Nothing follows.
  void Close() {
    if (!batches_[giving_ % kBatches].empty()) Send();
    Send();  // an empty batch is the end
  }

  // The taker's side: the next batch, valid until the next call; empty at the end.
  std::span<const trace::Item> Take() {
    if (taking_ > 0) {  // the batch before is done with
      batches_[(taking_ - 1) % kBatches].clear();
      taken_.store(taking_, std::memory_order_release);
      taken_.notify_one();
    }
    for (size_t given = given_.load(std::memory_order_acquire); given == taking_;
         given = given_.load(std::memory_order_acquire)) {
      given_.wait(given, std::memory_order_acquire);
    }
    return batches_[taking_++ % kBatches];
  }

  Handover() {
    for (auto& batch : batches_) batch.reserve(kItems);
  }

 private:
  static constexpr size_t kBatches = 8;
  static constexpr size_t kItems = 512;

  void Send() {
    ++giving_;
    given_.store(giving_, std::memory_order_release);
    given_.notify_one();
    // The next slot is free once the taker is done with what it held.
    for (size_t taken = taken_.load(std::memory_order_acquire); giving_ >= taken + kBatches;
         taken = taken_.load(std::memory_order_acquire)) {
      taken_.wait(taken, std::memory_order_acquire);
    }
  }

  std::array<std::vector<trace::Item>, kBatches> batches_;
  size_t giving_ = 0;  // the giver's: the batch being filled
  size_t taking_ = 0;  // the taker's: the next batch
  alignas(64) std::atomic<size_t> given_{0};
  alignas(64) std::atomic<size_t> taken_{0};
};

}  // namespace xenoscope::analysis
