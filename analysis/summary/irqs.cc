// The host's interrupts: how often and for how long each pCPU handled them, and the moves of their
// vectors.
#include <fmt/format.h>

#include <array>
#include <map>
#include <string>
#include <utility>

#include "analysis/bounded_table.h"
#include "analysis/summary/registry.h"
#include "trace/handled_interrupt.h"

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

constexpr GroupInfo kIrqsGroup{"irqs", "Interrupts handled", SectionLevel::kTrace,
                               GroupLayout::kTable, RowSubject::kPcpus};
constexpr GroupInfo kIrqVectorsGroup{"irq_vectors", "Interrupt vectors", SectionLevel::kTrace};
constexpr GroupInfo kUnmappedVectorsGroup{"unmapped_vectors", "Interrupts on vectors of no IRQ",
                                          SectionLevel::kTrace};

class Irqs final : public Mergeable<Irqs> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kHwIrqHandled);
    subscriptions.Record(Event::kHwIrqUnmappedVector);
    for (const Move& move : kMoves) subscriptions.Record(move.event);
  }

  void OnRecord(const AttributedRecord& attributed) override {
    const trace::Record& record = attributed.record;
    const uint32_t irq = record.payload.Word(0);
    if (record.event == Event::kHwIrqHandled) {
      handled_.At({irq, record.pcpu.value}, kOthers, kMaxEntries, budget_)
          .Add(trace::DecodeHandledInterrupt(record).cycles);
      return;
    }
    if (record.event == Event::kHwIrqUnmappedVector) {
      ++unmapped_.At({irq, 0}, kOthers, kMaxEntries, budget_);
      return;
    }
    for (size_t i = 0; i < kMoves.size(); ++i) {
      if (kMoves[i].event != record.event) continue;
      // bind, assign and clear have the IRQ in 16 bits.
      const bool half = record.event == Event::kHwIrqBindVector ||
                        record.event == Event::kHwIrqAssignVector ||
                        record.event == Event::kHwIrqClearVector;
      ++moves_.At({half ? irq & 0xffff : irq, 0}, kOthers, kMaxEntries, budget_)[i];
    }
  }

  void Merge(Irqs& earlier) {
    budget_ = earlier.budget_;
    const auto others = [](const TableKey& /*key*/) { return kOthers; };
    handled_.Prepend(
        earlier.handled_, kMaxEntries, budget_,
        [](Stat& stat, const Stat& more) { stat.Merge(more); }, others);
    moves_.Prepend(
        earlier.moves_, kMaxEntries, budget_,
        [](Moves& counts, const Moves& more) { AddCounts(more, counts); }, others);
    unmapped_.Prepend(
        earlier.unmapped_, kMaxEntries, budget_,
        [](uint64_t& count, uint64_t more) { count += more; }, others);
  }

  bool DependsOnOrder() const override {
    return handled_.Known(kOthers) != nullptr || moves_.Known(kOthers) != nullptr ||
           unmapped_.Known(kOthers) != nullptr;
  }

  [[nodiscard]] std::vector<GroupInfo> Groups() const override {
    return {kIrqsGroup, kIrqVectorsGroup, kUnmappedVectorsGroup};
  }
  void DescribeTrace(const TraceMetadata& /*metadata*/, Section& out) const override {
    MetricGroup& handled = out.AddGroup(kIrqsGroup);
    std::map<uint64_t, std::map<uint32_t, const Stat*>> by_irq;
    handled_.ForEach(
        [&](const TableKey& key, const Stat& stat) { by_irq[key.number][key.tag] = &stat; });
    for (const auto& [irq, pcpus] : by_irq) {
      Stat all;
      for (const auto& [pcpu, stat] : pcpus) all.Merge(*stat);
      MetricRow row{IrqName(irq), {}, {}};
      row.Add(all.Summary());
      if (irq != kOthers.number) {
        for (const auto& [pcpu, stat] : pcpus) {
          row.parts.push_back(MetricRow{fmt::format("p{}", pcpu), {}, {}}.Add(stat->Summary()));
        }
      }
      handled.rows.push_back(std::move(row));
    }
    MetricGroup& moves = out.AddGroup(kIrqVectorsGroup);
    for (const auto& [irq, counts] : ByNumber(moves_)) {
      MetricRow row{IrqName(irq), {}, {}};
      for (size_t i = 0; i < counts->size(); ++i) {
        if ((*counts)[i] > 0) row.Add(kMoves[i].key, MetricUnit::kCount, (*counts)[i]);
      }
      moves.rows.push_back(std::move(row));
    }
    MetricGroup& unmapped = out.AddGroup(kUnmappedVectorsGroup);
    for (const auto& [vector, count] : ByNumber(unmapped_)) {
      std::string name =
          vector == kOthers.number ? "(others)" : fmt::format("vector 0x{:x}", vector);
      unmapped.rows.push_back(
          MetricRow{std::move(name), {}, {}}.Add("count", MetricUnit::kCount, *count));
    }
  }

 private:
  using Moves = std::array<uint64_t, kMoves.size()>;

  // Limit of numbers, which no host reaches; a damaged trace may have any number.
  static constexpr uint32_t kMaxEntries = 16384;
  static constexpr TableKey kOthers{uint64_t{1} << 32, 0};

  static std::string IrqName(uint64_t irq) {
    return irq == kOthers.number ? "(others)" : fmt::format("irq {}", irq);
  }

  EntryBudget budget_{3 * kMaxEntries};  // each table's own limit applies first
  BoundedTable<Stat> handled_;           // key: IRQ; tag: pCPU
  BoundedTable<Moves> moves_;            // key: IRQ
  BoundedTable<uint64_t> unmapped_;
};

}  // namespace

std::unique_ptr<Analysis> MakeIrqs() { return std::make_unique<Irqs>(); }

}  // namespace xenoscope::analysis
