// The stretch of the timeline in which a sample with a bracket can lie: what one vCPU (or one pCPU)
// was doing, for as far back as the longest bracket reaches.
#pragma once

#include <cstddef>

#include "base/ids.h"
#include "base/mode.h"
#include "base/tsc.h"
#include "correlate/context.h"
#include "correlate/window.h"

namespace xenoscope::correlate {

// A vCPU doing one thing on one pCPU during [begin, end); or kLost.
struct Piece {
  TscRange range;
  Context context;
  VcpuRef vcpu;
  PcpuId pcpu;
  uint64_t run = 0;  // RunInterval::number
  Tsc turn;          // when that began
};

// Pieces that do not overlap, in the order of time.
class PieceWindow {
 public:
  // `piece` begins where the last one ended, or later. O(1).
  void Add(const Piece& piece) { pieces_.Add(piece); }
  // Forgets pieces that end at or before `t`. O(1) a piece.
  void DropBefore(Tsc t);
  // Calls visit(piece, part) for each piece that shares a part with `range`.
  // O(log pieces + those visited).
  template <typename Visitor>
  void ForEach(TscRange range, Visitor visit) const;
  // The piece that holds the instant, or null. O(log pieces).
  const Piece* At(Tsc t) const;

  bool empty() const { return pieces_.empty(); }
  size_t size() const { return pieces_.size(); }

 private:
  Window<Piece>::Iterator FirstEndingAfter(Tsc t) const;

  Window<Piece> pieces_;
};

// Whether a sample of this mode can have been taken in this context: guest code runs between
// VMENTRY and VMEXIT, Xen between VMEXIT and VMENTRY; of a PV vCPU the trace tells neither.
constexpr bool Agrees(Mode mode, ContextKind context) {
  switch (context) {
    case ContextKind::kGuest:
      return mode != Mode::kXen;
    case ContextKind::kExit:
    case ContextKind::kResume:
      return mode == Mode::kXen;
    case ContextKind::kRunning:
    case ContextKind::kLost:
    case ContextKind::kUntraced:
      break;
  }
  return true;
}

template <typename Visitor>
void PieceWindow::ForEach(TscRange range, Visitor visit) const {
  for (auto piece = FirstEndingAfter(range.begin);
       piece != pieces_.end() && piece->range.begin < range.end; ++piece) {
    const TscRange part = piece->range.Intersect(range);
    if (!part.Empty()) visit(*piece, part);
  }
}

}  // namespace xenoscope::correlate
