// The results that rules look at.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "analysis/document.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "correlate/row_key.h"
#include "profile/profile_results.h"
#include "recording/info.h"

namespace xenoscope::findings {

// What is pointed at outlives this, and is null where there is none of it.
struct Results {
  const profile::SampleSet* sample_set = nullptr;
  const profile::ProfileResults* profile = nullptr;  // set if `sample_set` is
  std::vector<correlate::Dimension> by{};            // the columns of profile->result
  const analysis::Document* trace = nullptr;         // described by findings::TraceAnalyses or more
  Cycles traced = 0;                                 // length of the trace, in cycles
  const recording::RecordingInfo* info = nullptr;
  Clock clock;
  std::function<std::string(DomainId)> domain_name = [](DomainId) { return std::string(); };

  // Returns "web", or "d1" for a domain without a name.
  [[nodiscard]] std::string Label(DomainId domain) const {
    return DomainLabel(domain, domain_name(domain));
  }
};

}  // namespace xenoscope::findings
