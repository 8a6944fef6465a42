// Power management of each pCPU: how often and how long it was in each idle state, at which
// frequency it ran and how often that changed. Times are those of the records: the ticks in them
// are of a timer that need not be the TSC.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "analysis/registry.h"

namespace xenoscope::analysis {
namespace {

using trace::Event;

class Power final : public Mergeable<Power> {
 public:
  void Subscribe(Subscriptions& subscriptions) const override {
    subscriptions.Record(Event::kPmFreqChange, Changes::kState);
    subscriptions.Record(Event::kPmIdleEntry, Changes::kState);
    subscriptions.Record(Event::kPmIdleExit, Changes::kState);
    subscriptions.Losses(Changes::kState);
  }

  void OnRecord(const Moment& moment) override {
    const trace::Record& record = moment.record;
    Pcpu& pcpu = pcpus_[record.pcpu];
    switch (record.event) {
      case Event::kPmIdleEntry:
        pcpu.idle = Since{record.payload.Word(0), record.tsc};
        break;
      case Event::kPmIdleExit:
        if (!pcpu.idle) {
          ++pcpu.figures.unmatched;
          break;
        }
        // Xen may fall back to a shallower state than it chose: what it left is what it was in.
        pcpu.figures.states[record.payload.Word(0)].Add(record.tsc - pcpu.idle->tsc);
        pcpu.idle.reset();
        break;
      default:
        if (!pcpu.first) pcpu.first = Since{record.payload.Word(0), record.tsc};
        EndFrequency(pcpu, record.tsc);
        ++pcpu.figures.changes;
        pcpu.frequency = Since{record.payload.Word(1), record.tsc};
        break;
    }
  }

  void OnLoss(const trace::Item& item) override {
    const auto pcpu = pcpus_.find(item.record.pcpu);
    if (pcpu == pcpus_.end() || item.kind != trace::ItemKind::kLossBegin) return;
    pcpu->second.idle.reset();
    EndFrequency(pcpu->second, item.record.tsc);
  }

  void Finish(Tsc end) override {
    for (auto& [id, pcpu] : pcpus_) EndFrequency(pcpu, end);
  }

  void StartCounting(const correlate::Timeline& /*timeline*/) override {
    for (auto& [id, pcpu] : pcpus_) pcpu.figures = {};
  }
  void Merge(Power& earlier) {
    for (const auto& [id, pcpu] : earlier.pcpus_) pcpus_[id].figures.Merge(pcpu.figures);
  }

  void DescribeTrace(const Facts& facts, Section& out) const override {
    Group& idle = out.AddGroup("idle_states", "Idle states");
    Group& residencies = out.AddGroup("frequencies", "Frequencies");
    for (const auto& [id, of_pcpu] : pcpus_) {
      const Figures& pcpu = of_pcpu.figures;
      const std::string name = fmt::format("p{}", id.value);
      Row states{name, {}, {}};
      for (const auto& [state, stat] : pcpu.states) {
        states.parts.push_back(Row{fmt::format("C{}", state), {}, {}}.Add(stat.Figures()));
      }
      if (pcpu.unmatched > 0) {
        states.parts.push_back(
            Row{"left, entry not seen", {}, {}}.Add("count", Unit::kCount, pcpu.unmatched));
      }
      if (!states.parts.empty()) idle.rows.push_back(std::move(states));
      if (pcpu.changes == 0) continue;
      Row times{name, {}, {}};
      times.Add("changes", Unit::kCount, pcpu.changes);
      for (const auto& [mhz, stat] : pcpu.frequencies) {
        times.parts.push_back(Row{fmt::format("{} MHz", mhz), {}, {}}.Add(stat.Figures()));
      }
      // No change was recorded before the first, which says what it was until then.
      if (const auto& first = of_pcpu.first) {
        times.parts.push_back(
            Row{fmt::format("{} MHz, until the first change", first->what), {}, {}}
                .Add("count", Unit::kCount, 1)
                .Add("cycles", Unit::kCycles, first->tsc - facts.range.begin));
      }
      residencies.rows.push_back(std::move(times));
    }
  }

 private:
  struct Since {
    uint32_t what;  // idle state, or MHz
    Tsc tsc;
  };
  struct Figures {
    uint64_t changes = 0;
    uint64_t unmatched = 0;
    std::map<uint32_t, TimeStat> states;
    std::map<uint32_t, TimeStat> frequencies;  // by MHz

    void Merge(const Figures& more) {
      changes += more.changes;
      unmatched += more.unmatched;
      for (const auto& [state, stat] : more.states) states[state].Merge(stat);
      for (const auto& [mhz, stat] : more.frequencies) frequencies[mhz].Merge(stat);
    }
  };
  struct Pcpu {
    std::optional<Since> idle;
    std::optional<Since> frequency;
    std::optional<Since> first;  // what it was until its first change, and when that was
    Figures figures;
  };

  static void EndFrequency(Pcpu& pcpu, Tsc at) {
    if (!pcpu.frequency) return;
    pcpu.figures.frequencies[pcpu.frequency->what].Add(at - pcpu.frequency->tsc);
    pcpu.frequency.reset();
  }

  std::map<PcpuId, Pcpu> pcpus_;
};

}  // namespace

std::unique_ptr<Analysis> MakePower() { return std::make_unique<Power>(); }

}  // namespace xenoscope::analysis
