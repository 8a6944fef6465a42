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
  Shared& last = batch.shared.at(static_cast<size_t>(placed.sample->mode));
  if (placed.list == 0 || placed.list != last.list) {
    last = {placed.list, batch.places.size()};
    batch.places.insert(batch.places.end(), placed.places.begin(), placed.places.end());
  }
  batch.placed.push_back({*placed.sample, placed, last.first_place, placed.places.size()});
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
  for (Held& held : batch.placed) {
    held.placed.sample = &held.sample;
    held.placed.places = places.subspan(held.first_place, held.places);
    observer_.OnPlaced(held.placed);
  }
  for (const Unplaced& unplaced : batch.unplaced) {
    observer_.OnUnplaced(unplaced.sample, unplaced.why);
  }
  for (const Traced& traced : batch.traced) {
    observer_.OnTraced(traced.vcpu, traced.context, traced.cycles);
  }
  batch.placed.clear();
  batch.places.clear();
  batch.shared = {};
  batch.unplaced.clear();
  batch.traced.clear();
}

}  // namespace xenoscope::correlate
