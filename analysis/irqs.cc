// The host's interrupts: how often and for how long each was handled on which pCPU, and how its
// vector moved about.
#include <fmt/format.h>

#include <array>
#include <map>
#include <string>
#include <utility>

#include "analysis/registry.h"

namespace xenoscope::analysis {
namespace {

using trace::Event;

struct Move {
  Event event;
  const char* key;
};
constexpr std::array kMoves = {
    Move{Event::kHwIrqBindVector, "bound"},
    Move{Event::kHwIrqAssignVector, "assigned"},
    Move{Event::kHwIrqClearVector, "cleared"},
    Move{Event::kHwIrqMoveFinish, "moves"},
    Move{Event::kHwIrqMoveCleanupDelay, "cleanups_delayed"},
    Move{Event::kHwIrqMoveCleanup, "cleanups"},
};

class Irqs final : public Mergeable<Irqs> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kHwIrqHandled);
    subscriptions.Record(Event::kHwIrqUnmappedVector);
    for (const Move& move : kMoves) subscriptions.Record(move.event);
  }

  void OnRecord(const Moment& moment) override {
    const trace::Record& record = moment.record;
    const uint32_t irq = record.payload.Word(0);
    if (record.event == Event::kHwIrqHandled) {
      // The low halves of the TSC: their difference is right though they wrap.
      handled_[irq][record.pcpu].Add(record.payload.Word(2) - record.payload.Word(1));
      return;
    }
    if (record.event == Event::kHwIrqUnmappedVector) {
      ++unmapped_[irq];
      return;
    }
    for (size_t i = 0; i < kMoves.size(); ++i) {
      if (kMoves[i].event != record.event) continue;
      // bind, assign and clear have the IRQ in half a word.
      const bool half = record.event == Event::kHwIrqBindVector ||
                        record.event == Event::kHwIrqAssignVector ||
                        record.event == Event::kHwIrqClearVector;
      ++moves_[half ? irq & 0xffff : irq][i];
    }
  }

  void Merge(Irqs& earlier) {
    for (const auto& [irq, pcpus] : earlier.handled_) {
      for (const auto& [pcpu, stat] : pcpus) handled_[irq][pcpu].Merge(stat);
    }
    for (const auto& [irq, counts] : earlier.moves_) AddCounts(counts, moves_[irq]);
    for (const auto& [vector, count] : earlier.unmapped_) unmapped_[vector] += count;
  }

  void DescribeTrace(const Facts& /*facts*/, Section& out) const override {
    Group& handled = out.AddGroup("irqs", "Interrupts handled");
    for (const auto& [irq, pcpus] : handled_) {
      Stat all;
      for (const auto& [pcpu, stat] : pcpus) all.Merge(stat);
      Row row{fmt::format("irq {}", irq), {}, {}};
      row.Add(all.Figures());
      for (const auto& [pcpu, stat] : pcpus) {
        row.parts.push_back(Row{fmt::format("p{}", pcpu.value), {}, {}}.Add(stat.Figures()));
      }
      handled.rows.push_back(std::move(row));
    }
    Group& moves = out.AddGroup("irq_vectors", "Interrupt vectors");
    for (const auto& [irq, counts] : moves_) {
      Row row{fmt::format("irq {}", irq), {}, {}};
      for (size_t i = 0; i < counts.size(); ++i) {
        if (counts[i] > 0) row.Add(kMoves[i].key, Unit::kCount, counts[i]);
      }
      moves.rows.push_back(std::move(row));
    }
    Group& unmapped = out.AddGroup("unmapped_vectors", "Interrupts on vectors of no IRQ");
    for (const auto& [vector, count] : unmapped_) {
      unmapped.rows.push_back(
          Row{fmt::format("vector 0x{:x}", vector), {}, {}}.Add("count", Unit::kCount, count));
    }
  }

 private:
  std::map<uint32_t, std::map<PcpuId, Stat>> handled_;  // by IRQ
  std::map<uint32_t, std::array<uint64_t, kMoves.size()>> moves_;
  std::map<uint32_t, uint64_t> unmapped_;
};

}  // namespace

std::unique_ptr<Analysis> MakeIrqs() { return std::make_unique<Irqs>(); }

}  // namespace xenoscope::analysis
