// The host's interrupts: how often and for how long each was handled on which pCPU, and how its
// vector moved about.
#include <fmt/format.h>

#include <array>
#include <map>
#include <string>
#include <utility>

#include "analysis/bounded_table.h"
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
      Of(handled_, {irq, record.pcpu.value}, room_)
          .Add(record.payload.Word(2) - record.payload.Word(1));
      return;
    }
    if (record.event == Event::kHwIrqUnmappedVector) {
      ++Of(unmapped_, {irq, 0}, room_);
      return;
    }
    for (size_t i = 0; i < kMoves.size(); ++i) {
      if (kMoves[i].event != record.event) continue;
      // bind, assign and clear have the IRQ in half a word.
      const bool half = record.event == Event::kHwIrqBindVector ||
                        record.event == Event::kHwIrqAssignVector ||
                        record.event == Event::kHwIrqClearVector;
      ++Of(moves_, {half ? irq & 0xffff : irq, 0}, room_)[i];
    }
  }

  void Merge(Irqs& earlier) {
    room_ = earlier.room_;
    Prepend(earlier.handled_, handled_, [](Stat& stat, const Stat& more) { stat.Merge(more); });
    Prepend(earlier.moves_, moves_,
            [](Moves& counts, const Moves& more) { AddCounts(more, counts); });
    Prepend(earlier.unmapped_, unmapped_, [](uint64_t& count, uint64_t more) { count += more; });
  }

  void DescribeTrace(const Facts& /*facts*/, Section& out) const override {
    Group& handled = out.AddGroup("irqs", "Interrupts handled");
    std::map<uint64_t, std::map<uint32_t, const Stat*>> by_irq;
    handled_.ForEach(
        [&](const TableKey& key, const Stat& stat) { by_irq[key.number][key.tag] = &stat; });
    for (const auto& [irq, pcpus] : by_irq) {
      Stat all;
      for (const auto& [pcpu, stat] : pcpus) all.Merge(*stat);
      Row row{IrqName(irq), {}, {}};
      row.Add(all.Figures());
      if (irq != kOthers) {
        for (const auto& [pcpu, stat] : pcpus) {
          row.parts.push_back(Row{fmt::format("p{}", pcpu), {}, {}}.Add(stat->Figures()));
        }
      }
      handled.rows.push_back(std::move(row));
    }
    Group& moves = out.AddGroup("irq_vectors", "Interrupt vectors");
    for (const auto& [irq, counts] : Sorted(moves_)) {
      Row row{IrqName(irq), {}, {}};
      for (size_t i = 0; i < counts->size(); ++i) {
        if ((*counts)[i] > 0) row.Add(kMoves[i].key, Unit::kCount, (*counts)[i]);
      }
      moves.rows.push_back(std::move(row));
    }
    Group& unmapped = out.AddGroup("unmapped_vectors", "Interrupts on vectors of no IRQ");
    for (const auto& [vector, count] : Sorted(unmapped_)) {
      std::string name = vector == kOthers ? "(others)" : fmt::format("vector 0x{:x}", vector);
      unmapped.rows.push_back(Row{std::move(name), {}, {}}.Add("count", Unit::kCount, *count));
    }
  }

 private:
  using Moves = std::array<uint64_t, kMoves.size()>;

  // More numbers than any host has; a damaged trace may have them all.
  static constexpr uint32_t kMost = 16384;
  static constexpr uint64_t kOthers = uint64_t{1} << 32;  // the remainder's number

  template <typename Value>
  static Value& Of(BoundedTable<Value>& table, const TableKey& key, Room& room) {
    Value* value = table.Find(key, kMost, room);
    return value != nullptr ? *value : table.Demand({kOthers, 0});
  }
  template <typename Value, typename Merge>
  void Prepend(BoundedTable<Value>& earlier, BoundedTable<Value>& table, Merge&& merge) {
    table.Prepend(earlier, kMost, room_, merge, [&](const TableKey& /*key*/, const Value& more) {
      merge(table.Demand({kOthers, 0}), more);
    });
  }
  template <typename Value>
  static std::map<uint64_t, const Value*> Sorted(const BoundedTable<Value>& table) {
    std::map<uint64_t, const Value*> sorted;
    table.ForEach([&](const TableKey& key, const Value& value) { sorted[key.number] = &value; });
    return sorted;
  }
  static std::string IrqName(uint64_t irq) {
    return irq == kOthers ? "(others)" : fmt::format("irq {}", irq);
  }

  Room room_{3 * kMost};        // each table's own limit is the one that counts
  BoundedTable<Stat> handled_;  // by IRQ, and as the tag pCPU
  BoundedTable<Moves> moves_;   // by IRQ
  BoundedTable<uint64_t> unmapped_;
};

}  // namespace

std::unique_ptr<Analysis> MakeIrqs() { return std::make_unique<Irqs>(); }

}  // namespace xenoscope::analysis
