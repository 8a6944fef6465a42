// The findings of a report: its trace is analysed in the same pass that places its samples.
#pragma once

#include "analysis/observed_trace.h"
#include "cli/profile_source.h"
#include "findings/find.h"
#include "report/profile/profile_view.h"

namespace xenoscope::cli {

class FindingsPass {
 public:
  // `all`: also what costs more than a tenth of a report (hypercalls, names of addresses).
  FindingsPass(const ProfileOptions& options, bool all);
  // What the profile's pass is to call. Null if only a part of the time was chosen: the trace is
  // analysed as a whole, and its times say nothing about a part of it.
  correlate::TraceObserver* observer() { return whole_ ? &trace_ : nullptr; }
  // Sets the findings of the finished profile, of which no row has been dropped. To be called once.
  void AddTo(const ProfileSource& source, report::ProfileReport& out);

 private:
  bool whole_;
  bool all_;
  analysis::ObservedTrace trace_;
};

}  // namespace xenoscope::cli
