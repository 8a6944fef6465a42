#include "correlate/brackets.h"

#include <algorithm>

namespace xenoscope::correlate {

std::deque<Piece>::const_iterator PieceWindow::FirstEndingAfter(Tsc t) const {
  return std::partition_point(pieces_.begin(), pieces_.end(),
                              [t](const Piece& piece) { return piece.range.end <= t; });
}

void PieceWindow::DropBefore(Tsc t) {
  while (!pieces_.empty() && pieces_.front().range.end <= t) pieces_.pop_front();
}

const Piece* PieceWindow::At(Tsc t) const {
  const auto piece = FirstEndingAfter(t);
  return piece != pieces_.end() && piece->range.Contains(t) ? &*piece : nullptr;
}

}  // namespace xenoscope::correlate
