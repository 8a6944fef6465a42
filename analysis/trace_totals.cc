#include "analysis/trace_totals.h"

#include <algorithm>

namespace xenoscope::analysis {

void TraceTotals::CountNonRecord(const trace::Item& item) {
  using trace::ItemKind;
  switch (item.kind) {
    case ItemKind::kUnknownEvent:
      ++unknown_events;
      if (unknown_by_id.size() < kUnknownKept || unknown_by_id.contains(item.record.id)) {
        ++unknown_by_id[item.record.id];
      }
      break;
    case ItemKind::kMalformed:
      if (malformed++ == 0) first_malformed_offset = item.record.offset;
      break;
    case ItemKind::kWrap:
      ++padding;
      break;
    case ItemKind::kLost:
      ++loss_marks;
      lost_records += item.record.payload.Word(0);
      break;
    case ItemKind::kDamaged:
      ++damages;
      damaged_bytes += item.damage.bytes;
      if (first_damages.size() < kDamagesKept) {
        first_damages.push_back(item.damage);
      }
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
  if (malformed == 0) first_malformed_offset = later.first_malformed_offset;
  malformed += later.malformed;
  padding += later.padding;
  loss_marks += later.loss_marks;
  lost_records += later.lost_records;
  damages += later.damages;
  damaged_bytes += later.damaged_bytes;
  last = std::max(last, later.last);
  for (const auto& [id, count] : later.unknown_by_id) {
    if (unknown_by_id.size() < kUnknownKept || unknown_by_id.contains(id)) {
      unknown_by_id[id] += count;
    }
  }
  for (const trace::Damage& damage : later.first_damages) {
    if (first_damages.size() < kDamagesKept) first_damages.push_back(damage);
  }
  faults.Append(later.faults);
}

}  // namespace xenoscope::analysis
