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
  explicit FindingsPass(bool all);
  // What the profile's pass is to call.
  correlate::TraceObserver* observer() { return &trace_; }
  // Sets the findings of the finished profile, of which no row has been dropped. To be called once.
  void AddTo(const ProfileSource& source, const ProfileOptions& options,
             report::ProfileReport& out);

 private:
  bool all_;
  analysis::ObservedTrace trace_;
};

}  // namespace xenoscope::cli
