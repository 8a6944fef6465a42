#include "analysis/evidence.h"

namespace xenoscope::analysis {
namespace {

template <typename Kind>
void ObserveRecords(std::span<const trace::Item> items, Kind& evidence) {
  if (evidence.Enough()) return;
  for (const trace::Item& item : items) {
    if (item.kind == trace::ItemKind::kRecord) evidence.Observe(item.record);
  }
}

}  // namespace

void Evidence::Observe(std::span<const trace::Item> items) {
  ObserveRecords(items, dialect_);
  ObserveRecords(items, clock_);
}

Facts Evidence::Conclude(const Known& known, TscRange range) const {
  Facts facts{known.dialect.CompletedBy(dialect_.Conclude()), {}, range, known.resolver};
  if (known.clock) {
    facts.clock = *known.clock;
  } else if (const auto estimate = clock_.Conclude()) {
    facts.clock = {estimate->hz, ClockSource::kEstimated};
  }
  return facts;
}

}  // namespace xenoscope::analysis
