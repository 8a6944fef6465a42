// Subscribers with a timeline of their own: what one thread does with its part of the stream.
#pragma once

#include <vector>

#include "analysis/analysis.h"
#include "analysis/dispatcher.h"
#include "correlate/timeline.h"
#include "trace/cursor.h"
#include "trace/record.h"

namespace xenoscope::analysis {

// The subscribers of a container of std::unique_ptr to them.
template <typename Owners>
std::vector<Subscriber*> SubscribersOf(const Owners& owners) {
  std::vector<Subscriber*> subscribers;
  subscribers.reserve(owners.size());
  for (const auto& owner : owners) subscribers.push_back(owner.get());
  return subscribers;
}

class Lane {
 public:
  // The subscribers must outlive the lane. Everything counts, unless StartFollowing() comes first.
  explicit Lane(const std::vector<Subscriber*>& subscribers)
      : dispatcher_(subscribers), timeline_(dispatcher_) {}

  // What comes now only changes the state.
  void StartFollowing() { dispatcher_.Restrict(Changes::kState); }
  // What comes from now on counts.
  void StartCounting() {
    dispatcher_.Restrict(Changes::kFigures);
    timeline_.ForgetFaults();
  }
  // The events whose records do anything here now. Others need not be taken.
  trace::EventSet WantedEvents() const;

  // Takes the next item of the stream. A few instructions for a record that nobody wants.
  void Take(const trace::Item& item) {
    if (item.kind != trace::ItemKind::kRecord) [[unlikely]] {
      TakeRare(item);
      return;
    }
    TakeRecord(item.record);
  }
  void TakeRecord(const trace::Record& record) {
    Subscriber* const* called = dispatcher_.Called(record.event);
    if (*called != nullptr) {
      const Moment moment{record, timeline_.Current(record.pcpu)};
      do {
        (*called++)->OnRecord(moment);
      } while (*called != nullptr);
    }
    timeline_.TakeRecord(record);
  }
  void Finish() { timeline_.Finish(); }

  const correlate::Timeline& timeline() const { return timeline_; }

 private:
  void TakeRare(const trace::Item& item);

  Dispatcher dispatcher_;
  correlate::Timeline timeline_;
};

}  // namespace xenoscope::analysis
