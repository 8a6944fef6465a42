#include "analysis/trace_totals.h"

#include <algorithm>

namespace xenoscope::analysis {

void TraceTotals::CountNonRecord(const trace::Item& item) {
  using trace::ItemKind;
  unread.Count(item);
  switch (item.kind) {
    case ItemKind::kUnknownEvent:
      ++unknown_events;
      KeepUnknown(item.record.id, 1);
      break;
    case ItemKind::kMalformed:
      if (unread.malformed == 1) first_malformed_offset = item.record.offset;
      break;
    case ItemKind::kWrap:
      ++padding;
      break;
    case ItemKind::kLost:
      ++loss_marks;
      lost_records += item.record.payload.Word(0);
      break;
    case ItemKind::kDamaged:
      KeepDamage(item.damage);
      break;
    case ItemKind::kRecord:
    case ItemKind::kLossBegin:
    case ItemKind::kPcpuBegin:
    case ItemKind::kPcpuEnd:
      break;
  }
}

void TraceTotals::Append(const TraceTotals& later) {
  unknown_events += later.unknown_events;
  if (unread.malformed == 0) first_malformed_offset = later.first_malformed_offset;
  padding += later.padding;
  loss_marks += later.loss_marks;
  lost_records += later.lost_records;
  unread.Append(later.unread);
  last = std::max(last, later.last);
  for (const auto& [id, count] : later.unknown_by_id) KeepUnknown(id, count);
  for (const trace::Damage& damage : later.first_damages) KeepDamage(damage);
  faults.Append(later.faults);
}

void TraceTotals::KeepUnknown(uint32_t id, uint64_t count) {
  if (unknown_by_id.size() < kUnknownKept || unknown_by_id.contains(id)) {
    unknown_by_id[id] += count;
  }
}

void TraceTotals::KeepDamage(const trace::Damage& damage) {
  if (first_damages.size() < kDamagesKept) first_damages.push_back(damage);
}

}  // namespace xenoscope::analysis
