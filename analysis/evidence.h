// The facts of a trace from what is known beforehand and, for the rest, what its records show.
#pragma once

#include <span>

#include "analysis/analysis.h"
#include "analysis/run.h"
#include "base/tsc.h"
#include "trace/dialect.h"
#include "trace/record.h"

namespace xenoscope::analysis {

class Evidence {
 public:
  // The next items of the stream. Costs nothing once there is enough.
  void Observe(std::span<const trace::Item> items);
  Facts Conclude(const Known& known, TscRange range) const;

 private:
  trace::DialectEvidence dialect_;
  trace::ClockEvidence clock_;
};

}  // namespace xenoscope::analysis
