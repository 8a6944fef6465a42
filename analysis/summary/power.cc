// Power management of each pCPU: the number and time of its idle states, its frequencies, and the
// changes of these. Times are those of the records: the ticks in them are of a timer that need not
// be the TSC.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "analysis/bounded_table.h"
#include "analysis/summary/registry.h"

namespace xenoscope::analysis {
namespace {

using trace::Event;

constexpr GroupInfo kIdleStatesGroup{"idle_states", "Idle states", SectionLevel::kTrace,
                                     GroupLayout::kTable, RowSubject::kPcpus};
constexpr GroupInfo kFrequenciesGroup{"frequencies", "Frequencies", SectionLevel::kTrace,
                                      GroupLayout::kTable, RowSubject::kPcpus};

class Power final : public Mergeable<Power> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kPmFreqChange);
    subscriptions.Record(Event::kPmIdleEntry);
    subscriptions.Record(Event::kPmIdleExit);
    subscriptions.Losses();
  }

  void OnRecord(const AttributedRecord& attributed) override {
    const trace::Record& record = attributed.record;
    Pcpu& pcpu = pcpus_[record.pcpu];
    switch (record.event) {
      case Event::kPmIdleEntry:
        pcpu.idle_known = true;
        pcpu.idle_since = record.tsc;
        break;
      case Event::kPmIdleExit:
        if (!pcpu.idle_known) {
          pcpu.first_exit = Since{record.payload.Word(0), record.tsc};
        } else {
          LeaveIdle(pcpu, {record.payload.Word(0), record.tsc});
        }
        pcpu.idle_known = true;
        break;
      default:
        if (!pcpu.first) pcpu.first = Since{record.payload.Word(0), record.tsc};
        EndFrequency(pcpu, record.tsc);
        ++pcpu.counters.changes;
        pcpu.frequency = Since{record.payload.Word(1), record.tsc};
        break;
    }
  }

  void OnLoss(const trace::Item& item) override {
    if (item.kind != trace::ItemKind::kLossBegin) return;
    Pcpu& pcpu = pcpus_[item.record.pcpu];
    pcpu.idle_known = true;
    pcpu.idle_since.reset();
    EndFrequency(pcpu, item.record.tsc);
  }

  void Finish(Tsc end) override {
    for (auto& [id, pcpu] : pcpus_) {
      if (pcpu.first_exit) ++pcpu.counters.unmatched;
      EndFrequency(pcpu, end);
    }
  }

  // Completes what was open when this part of the trace began.
  void Merge(Power& earlier) {
    for (auto& [id, before] : earlier.pcpus_) {
      Pcpu& pcpu = pcpus_[id];
      if (pcpu.frequency_end) EndFrequency(before, *pcpu.frequency_end);
      if (before.frequency) pcpu.frequency = before.frequency;
      if (before.frequency_end) pcpu.frequency_end = before.frequency_end;
      if (before.first) pcpu.first = before.first;
      if (pcpu.first_exit && before.idle_known) {
        LeaveIdle(before, *pcpu.first_exit);
        pcpu.first_exit.reset();
      }
      if (before.first_exit) pcpu.first_exit = before.first_exit;
      if (!pcpu.idle_known) pcpu.idle_since = before.idle_since;
      pcpu.idle_known = pcpu.idle_known || before.idle_known;
      pcpu.counters.Prepend(before.counters);
    }
  }

  [[nodiscard]] std::vector<GroupInfo> Groups() const override {
    return {kIdleStatesGroup, kFrequenciesGroup};
  }
  void DescribeTrace(const TraceMetadata& metadata, Section& out) const override {
    MetricGroup& idle = out.AddGroup(kIdleStatesGroup);
    MetricGroup& residencies = out.AddGroup(kFrequenciesGroup);
    for (const auto& [id, of_pcpu] : pcpus_) {
      const Counters& pcpu = of_pcpu.counters;
      const std::string name = fmt::format("p{}", id.value);
      MetricRow states{name, {}, {}};
      AddParts(pcpu.states, "C{}", states);
      if (pcpu.unmatched > 0) {
        states.parts.push_back(MetricRow{"left, entry not seen", {}, {}}.Add(
            "count", MetricUnit::kCount, pcpu.unmatched));
      }
      if (!states.parts.empty()) idle.rows.push_back(std::move(states));
      if (pcpu.changes == 0) continue;
      MetricRow times{name, {}, {}};
      times.Add("changes", MetricUnit::kCount, pcpu.changes);
      AddParts(pcpu.frequencies, "{} MHz", times);
      // The first change says what the frequency was until then.
      if (const auto& first = of_pcpu.first) {
        times.parts.push_back(
            MetricRow{fmt::format("{} MHz, until the first change", first->what), {}, {}}
                .Add("count", MetricUnit::kCount, 1)
                .Add("cycles", MetricUnit::kCycles, first->tsc - metadata.range.begin));
      }
      residencies.rows.push_back(std::move(times));
    }
  }

 private:
  struct Since {
    uint32_t what;  // an idle state, or a frequency in MHz
    Tsc tsc;
  };
  using Times = BoundedTable<TimeStat>;
  // Limit of states and of frequencies, which no processor reaches; a damaged trace may have any
  // number.
  static constexpr uint32_t kMaxEntries = 32;
  static constexpr TableKey kOthers{uint64_t{1} << 32, 0};

  struct Counters {
    uint64_t changes = 0;
    uint64_t unmatched = 0;
    Times states;
    Times frequencies;  // key: MHz

    void Prepend(Counters& earlier) {
      changes += earlier.changes;
      unmatched += earlier.unmatched;
      for (const auto& [times, before] :
           {std::pair(&states, &earlier.states), std::pair(&frequencies, &earlier.frequencies)}) {
        EntryBudget budget{kMaxEntries};
        times->Prepend(
            *before, kMaxEntries, budget,
            [](TimeStat& stat, const TimeStat& more) { stat.Merge(more); },
            [](const TableKey& /*key*/) { return kOthers; });
      }
    }
  };
  struct Pcpu {
    // Whether a record since the beginning of this part showed if it idles; if it does, since when.
    bool idle_known = false;
    std::optional<Tsc> idle_since;
    std::optional<Since> first_exit;  // end of an idle state that was entered before this part
    std::optional<Since> frequency;
    std::optional<Since> first;  // frequency until the first change, and the time of that change
    std::optional<Tsc> frequency_end;  // end of the frequency from before this part
    Counters counters;
  };

  // Ends an idle state. Xen may use a shallower state than it chose: the state at the exit counts.
  static void LeaveIdle(Pcpu& pcpu, const Since& exit) {
    if (!pcpu.idle_since) {
      ++pcpu.counters.unmatched;
      return;
    }
    StatOf(pcpu.counters.states, exit.what).Add(exit.tsc - *pcpu.idle_since);
    pcpu.idle_since.reset();
  }

  static TimeStat& StatOf(Times& times, uint32_t number) {
    EntryBudget budget{1};  // the table's own limit applies first
    return times.At({number, 0}, kOthers, kMaxEntries, budget);
  }

  static void AddParts(const Times& times, const char* name, MetricRow& row) {
    for (const auto& [number, stat] : ByNumber(times)) {
      std::string part =
          number == kOthers.number ? "(others)" : fmt::format(fmt::runtime(name), number);
      row.parts.push_back(MetricRow{std::move(part), {}, {}}.Add(stat->Summary()));
    }
  }

  static void EndFrequency(Pcpu& pcpu, Tsc at) {
    if (!pcpu.frequency) {
      if (!pcpu.frequency_end) pcpu.frequency_end = at;
      return;
    }
    StatOf(pcpu.counters.frequencies, pcpu.frequency->what).Add(at - pcpu.frequency->tsc);
    pcpu.frequency.reset();
  }

  std::map<PcpuId, Pcpu> pcpus_;
};

}  // namespace

std::unique_ptr<Analysis> MakePower() { return std::make_unique<Power>(); }

}  // namespace xenoscope::analysis
