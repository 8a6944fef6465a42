// Runs an observer of placed samples on a thread, while the next samples are placed:
//
//   Placer --batches of samples and traced time--> (the thread) --> observer
//
// The observer receives what it would receive without the thread: all samples in their order, and
// all traced time. Only the order between samples and time changes, within a batch. Memory: as many
// samples as the EmRefiner holds, so that placing goes on while it refines them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "correlate/batch_thread.h"
#include "correlate/placing/placed_sample.h"

namespace xenoscope::correlate {

class PlacingThread final : public PlacingObserver {
 public:
  // `observer` outlives this, and is used by the thread alone until Finish.
  explicit PlacingThread(PlacingObserver& observer);

  void OnPlaced(const PlacedSample& placed) override;
  void OnUnplaced(const recording::Sample& sample, UnplacedReason why) override;
  void OnTraced(VcpuRef vcpu, Context context, ContextTime time) override;

  // Returns when the observer has received everything. Nothing may come after that.
  void Finish() { batches_.Finish(); }

 private:
  // What samples of one list have in common.
  struct Common {
    PlacedSample placed;     // without the places, and what QueuedSample has: these are set later
    size_t first_place = 0;  // index into Batch::places
    size_t places = 0;       // the number of places
  };
  struct QueuedSample {
    recording::Sample sample;
    Address address = 0;
    uint64_t cluster = 0;
    size_t common = 0;  // index into Batch::commons
  };
  struct Unplaced {
    recording::Sample sample;
    UnplacedReason why{};
  };
  struct Traced {
    VcpuRef vcpu;
    Context context;
    ContextTime time;
  };
  struct Batch {
    std::vector<QueuedSample> placed;
    std::vector<Common> commons;
    std::vector<Place> places;       // the places of all commons
    std::array<size_t, 3> recent{};  // by mode: the index of the last common
    std::vector<Unplaced> unplaced;
    std::vector<Traced> traced;
  };

  void DeliverBatch(Batch& batch);

  PlacingObserver& observer_;
  BatchThread<Batch, 256> batches_;
};

}  // namespace xenoscope::correlate
