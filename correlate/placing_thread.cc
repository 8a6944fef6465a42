#include "correlate/placing_thread.h"

namespace xenoscope::correlate {
namespace {

// A batch has at most about so many of each.
constexpr size_t kMostSamples = 2048;
constexpr size_t kMostPlaces = 4096;
constexpr size_t kMostTraced = 4096;

}  // namespace

PlacingThread::PlacingThread(PlacingObserver& observer)
    : observer_(observer), thread_([this] { Work(); }) {}

void PlacingThread::OnPlaced(const PlacedSample& placed) {
  Batch& batch = Filling();
  size_t& recent = batch.recent.at(static_cast<size_t>(placed.sample->mode));
  const bool is_another = placed.list == 0 || recent >= batch.commons.size() ||
                          batch.commons[recent].placed.list != placed.list;
  if (is_another) {
    recent = batch.commons.size();
    batch.commons.push_back({placed, batch.places.size(), placed.places.size()});
    batch.places.insert(batch.places.end(), placed.places.begin(), placed.places.end());
  }
  batch.placed.push_back({*placed.sample, placed.address, placed.run, recent});
  if (batch.placed.size() >= kMostSamples || batch.places.size() >= kMostPlaces) HandOver();
}

void PlacingThread::OnUnplaced(const recording::Sample& sample, Remainder why) {
  Batch& batch = Filling();
  batch.unplaced.push_back({sample, why});
  if (batch.unplaced.size() >= kMostSamples) HandOver();
}

void PlacingThread::OnTraced(VcpuRef vcpu, Context context, Cycles cycles) {
  Batch& batch = Filling();
  batch.traced.push_back({vcpu, context, cycles});
  if (batch.traced.size() >= kMostTraced) HandOver();
}

void PlacingThread::Finish() {
  if (!thread_.joinable()) return;
  Filling().last = true;
  HandOver();
  thread_.join();
}

void PlacingThread::HandOver() {
  std::unique_lock lock(mutex_);
  ++filled_;
  changed_.notify_one();
  changed_.wait(lock, [this] { return filled_ - handed_on_ < batches_.size(); });
}

void PlacingThread::Work() {
  for (bool last = false; !last;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return handed_on_ < filled_; });
    Batch& batch = batches_[handed_on_ % batches_.size()];
    lock.unlock();
    last = batch.last;
    HandOn(batch);
    lock.lock();
    ++handed_on_;
    changed_.notify_one();
  }
}

void PlacingThread::HandOn(Batch& batch) {
  const std::span<const Place> places = batch.places;
  for (const Held& held : batch.placed) {
    const Common& common = batch.commons[held.common];
    PlacedSample placed = common.placed;
    placed.sample = &held.sample;
    placed.address = held.address;
    placed.run = held.run;
    placed.places = places.subspan(common.first_place, common.places);
    observer_.OnPlaced(placed);
  }
  for (const Unplaced& unplaced : batch.unplaced) {
    observer_.OnUnplaced(unplaced.sample, unplaced.why);
  }
  for (const Traced& traced : batch.traced) {
    observer_.OnTraced(traced.vcpu, traced.context, traced.cycles);
  }
  batch.placed.clear();
  batch.places.clear();
  batch.commons.clear();
  batch.recent = {};
  batch.unplaced.clear();
  batch.traced.clear();
}

}  // namespace xenoscope::correlate
