#include "correlate/losses.h"

namespace xenoscope::correlate {

void Losses::Begin(PcpuId pcpu, Tsc at) {
  if (pcpu.value >= losing_.size()) losing_.resize(size_t{pcpu.value} + 1);
  if (losing_[pcpu.value]) return;
  losing_[pcpu.value] = true;
  if (lost_++ == 0) since_ = at;
}

void Losses::End(PcpuId pcpu, Tsc at) {
  if (pcpu.value >= losing_.size() || !losing_[pcpu.value]) return;
  losing_[pcpu.value] = false;
  if (--lost_ > 0 || at <= since_) return;
  total_ += at - since_;
  ranges_.Add({since_, at});
}

void Losses::EndOfPcpu(PcpuId pcpu, Tsc at) {
  End(pcpu, at);
  ended_ = std::min(ended_, at);
}

void Losses::DropBefore(Tsc t) {
  ranges_.DropWhile([t](TscRange lost) { return lost.end <= t; });
}

}  // namespace xenoscope::correlate
