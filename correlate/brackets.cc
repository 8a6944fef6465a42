#include "correlate/brackets.h"

#include <algorithm>

namespace xenoscope::correlate {

Window<Piece>::Iterator PieceWindow::FirstEndingAfter(Tsc t) const {
  return std::partition_point(pieces_.begin(), pieces_.end(),
                              [t](const Piece& piece) { return piece.range.end <= t; });
}

void PieceWindow::DropBefore(Tsc t) {
  pieces_.ForgetWhile([t](const Piece& piece) { return piece.range.end <= t; });
}

const Piece* PieceWindow::At(Tsc t) const {
  const auto piece = FirstEndingAfter(t);
  return piece != pieces_.end() && piece->range.Contains(t) ? &*piece : nullptr;
}

}  // namespace xenoscope::correlate
