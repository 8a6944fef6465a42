#include "report/unread_notes.h"

#include <fmt/format.h>

#include "report/table/table_text.h"

namespace xenoscope::report {

std::vector<std::string> UnreadNotes(const trace::UnreadCounts& unread) {
  std::vector<std::string> notes;
  if (unread.damages > 0) {
    notes.push_back(fmt::format(
        "{} damaged place{} in the trace, of {} bytes: what was recorded there is missing "
        "(`xenoscope summary` lists the places)",
        CellText(unread.damages, ColumnUnit::kCount), unread.damages == 1 ? "" : "s",
        CellText(unread.damaged_bytes, ColumnUnit::kCount)));
  }
  if (unread.malformed > 0) {
    notes.push_back(fmt::format(
        "{} trace record{} left out: no version of Xen writes such a size or vCPU number",
        CellText(unread.malformed, ColumnUnit::kCount), unread.malformed == 1 ? " is" : "s are"));
  }
  return notes;
}

}  // namespace xenoscope::report
