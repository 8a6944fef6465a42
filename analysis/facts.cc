#include "analysis/facts.h"

#include "trace/probe.h"

namespace xenoscope::analysis {

Facts EstablishFacts(const trace::TraceFile& file, const Known& known) {
  const trace::Probe probe = trace::ProbeTrace(file);
  Facts facts{known.dialect.CompletedBy(probe.dialect), {}, {}, known.resolver};
  facts.clock = known.clock.value_or(probe.ClockOr());
  return facts;
}

}  // namespace xenoscope::analysis
