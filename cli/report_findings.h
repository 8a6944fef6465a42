// The findings of a report: its trace is analysed while its samples are placed.
#pragma once

#include <cstdint>
#include <optional>

#include "analysis/document.h"
#include "analysis/observed_trace.h"
#include "cli/profile_source.h"
#include "findings/find.h"
#include "report/profile/profile_view.h"

namespace xenoscope::cli {

// What is analysed besides: hypercalls, and names of addresses, cost more than a tenth of a report.
enum class FindingsDetail : uint8_t { kQuick, kHypercalls, kAll };

class FindingsPass {
 public:
  FindingsPass(const ProfileOptions& options, FindingsDetail detail);
  // Who is to see the trace of the profile. Nobody if only a part of the time was chosen: the trace
  // is analysed as a whole, and its times say nothing about a part of it.
  correlate::PlacingObservers observers() {
    correlate::PlacingObservers observers;
    if (whole_) observers.trace.push_back(&trace_);
    return observers;
  }
  // Sets the findings of the finished profile, of which no row has been dropped. To be called once.
  void AddTo(const ProfileSource& source, report::ProfileReport& out);
  // Returns the length of the trace, in cycles, after the pass.
  [[nodiscard]] Cycles traced() const { return trace_.range().Length(); }
  // Returns the tables of the trace after AddTo; null without a trace, and for a part of the time.
  [[nodiscard]] const analysis::Document* document() const {
    return document_ ? &*document_ : nullptr;
  }

 private:
  bool whole_;
  FindingsDetail detail_;
  analysis::ObservedTrace trace_;
  std::optional<analysis::Document> document_;
};

}  // namespace xenoscope::cli
