#include "correlate/placing_thread.h"

namespace xenoscope::correlate {
namespace {

// The most samples, and the most parts of traced time, of a batch.
constexpr size_t kMaxSamples = 2048;
constexpr size_t kMaxPlaces = 4096;
constexpr size_t kMaxTraced = 4096;

}  // namespace

PlacingThread::PlacingThread(PlacingObserver& observer)
    : observer_(observer), batches_([this](Batch& batch) { DeliverBatch(batch); }) {}

void PlacingThread::OnPlaced(const PlacedSample& placed) {
  Batch& batch = batches_.Current();
  size_t& recent = batch.recent.at(static_cast<size_t>(placed.mode()));
  const bool is_another = placed.list == 0 || recent >= batch.commons.size() ||
                          batch.commons[recent].placed.list != placed.list;
  if (is_another) {
    recent = batch.commons.size();
    batch.commons.push_back({placed, batch.places.size(), placed.places.size()});
    batch.places.insert(batch.places.end(), placed.places.begin(), placed.places.end());
  }
  batch.placed.push_back({*placed.sample, placed.address, placed.cluster, recent});
  if (batch.placed.size() >= kMaxSamples || batch.places.size() >= kMaxPlaces) batches_.Submit();
}

void PlacingThread::OnUnplaced(const recording::Sample& sample, UnplacedReason why) {
  Batch& batch = batches_.Current();
  batch.unplaced.push_back({sample, why});
  if (batch.unplaced.size() >= kMaxSamples) batches_.Submit();
}

void PlacingThread::OnTraced(VcpuRef vcpu, Context context, ContextTime time) {
  Batch& batch = batches_.Current();
  batch.traced.push_back({vcpu, context, time});
  if (batch.traced.size() >= kMaxTraced) batches_.Submit();
}

void PlacingThread::DeliverBatch(Batch& batch) {
  const std::span<const Place> places = batch.places;
  for (const QueuedSample& queued : batch.placed) {
    const Common& common = batch.commons[queued.common];
    PlacedSample placed = common.placed;
    placed.sample = &queued.sample;
    placed.address = queued.address;
    placed.cluster = queued.cluster;
    placed.places = places.subspan(common.first_place, common.places);
    observer_.OnPlaced(placed);
  }
  for (const Unplaced& unplaced : batch.unplaced) {
    observer_.OnUnplaced(unplaced.sample, unplaced.why);
  }
  for (const Traced& traced : batch.traced) {
    observer_.OnTraced(traced.vcpu, traced.context, traced.time);
  }
  batch.placed.clear();
  batch.places.clear();
  batch.commons.clear();
  batch.recent = {};
  batch.unplaced.clear();
  batch.traced.clear();
}

}  // namespace xenoscope::correlate
