// A group of analyses with a timeline of its own: what one thread does with the stream.
#pragma once

#include <vector>

#include "analysis/analysis.h"
#include "analysis/dispatcher.h"
#include "correlate/timeline.h"
#include "trace/record.h"

namespace xenoscope::analysis {

class Lane {
 public:
  // The analyses must outlive the lane.
  explicit Lane(const std::vector<Analysis*>& analyses)
      : dispatcher_(analyses), timeline_(dispatcher_) {}

  // Whether Take() would do anything with the item.
  bool Concerns(const trace::Item& item) const {
    return item.kind != trace::ItemKind::kRecord || dispatcher_.Wants(item.record.event) ||
           timeline_.Concerns(item.record.event);
  }
  void Take(const trace::Item& item) {
    if (item.kind == trace::ItemKind::kRecord) [[likely]] {
      if (dispatcher_.Wants(item.record.event)) {
        dispatcher_.Record({item.record, timeline_.Current(item.record.pcpu)});
      }
    } else if (item.kind == trace::ItemKind::kLossBegin || item.kind == trace::ItemKind::kLost) {
      dispatcher_.Loss(item);
    }
    timeline_.Take(item);
  }
  void Finish() { timeline_.Finish(); }

  const correlate::Timeline& timeline() const { return timeline_; }

 private:
  Dispatcher dispatcher_;
  correlate::Timeline timeline_;
};

}  // namespace xenoscope::analysis
