// Lets an observer of placing work on a thread of its own, while the next samples are placed:
//
//   Placer --batches of samples and traced time--> (the thread) --> observer
//
// The observer sees what it would see without: all samples in their order, and all traced time.
// Only which of the two comes first is another, by at most a batch. Memory: that of as many samples
// as the EmRefiner holds, so that placing goes on while it refines them.
#pragma once

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "correlate/placing/placed_sample.h"

namespace xenoscope::correlate {

class PlacingThread final : public PlacingObserver {
 public:
  // `observer` outlives it, and belongs to the thread until Finish.
  explicit PlacingThread(PlacingObserver& observer);
  PlacingThread(const PlacingThread&) = delete;
  PlacingThread& operator=(const PlacingThread&) = delete;
  PlacingThread(PlacingThread&&) = delete;
  PlacingThread& operator=(PlacingThread&&) = delete;
  ~PlacingThread() override { Finish(); }

  void OnPlaced(const PlacedSample& placed) override;
  void OnUnplaced(const recording::Sample& sample, UnplacedReason why) override;
  void OnTraced(VcpuRef vcpu, Context context, Cycles cycles) override;

  // Returns when the observer has seen all. Nothing is taken after that.
  void Finish();

 private:
  // What samples of one list have in common.
  struct Common {
    PlacedSample placed;     // what QueuedSample has, and the places, are set when it is handed on
    size_t first_place = 0;  // of Batch::places
    size_t places = 0;       // how many
  };
  struct QueuedSample {
    recording::Sample sample;
    Address address = 0;
    uint64_t cluster = 0;
    size_t common = 0;  // of Batch::commons
  };
  struct Unplaced {
    recording::Sample sample;
    UnplacedReason why{};
  };
  struct Traced {
    VcpuRef vcpu;
    Context context;
    Cycles cycles = 0;
  };
  struct Batch {
    std::vector<QueuedSample> placed;
    std::vector<Common> commons;
    std::vector<Place> places;       // of all of these
    std::array<size_t, 3> recent{};  // of commons, by mode
    std::vector<Unplaced> unplaced;
    std::vector<Traced> traced;
    bool last = false;
  };

  Batch& CurrentBatch() { return batches_[filled_ % batches_.size()]; }
  // Hands over the batch that is being filled, and waits until there is another to fill.
  void SubmitBatch();
  void Work();
  void DeliverBatch(Batch& batch);

  PlacingObserver& observer_;
  // A ring. Batch n is filled by the one thread while n == filled_, then handed on by the other.
  std::array<Batch, 256> batches_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint64_t filled_ = 0;     // written with the mutex, by who fills only
  uint64_t delivered_ = 0;  // written with the mutex, by the thread only
  std::thread thread_;
};

}  // namespace xenoscope::correlate
