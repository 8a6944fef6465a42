#include "report/dump/batch_source.h"

#include <algorithm>
#include <optional>
#include <span>

namespace xenoscope::report {
namespace {

using trace::Event;
using trace::Item;
using trace::ItemKind;

// The entries that a batch shall have: their text stays in the processor's cache.
constexpr size_t kUsualEntries = 8192;
constexpr Cycles kFirstSpan = Cycles{1} << 20;

// Returns how many entries a batch may have of each of so many pCPUs, for all to have at most
// Batch::kMaxEntries.
size_t MostOfPcpu(size_t pcpus) { return std::max(4 * kUsualEntries / pcpus, size_t{64}); }
static_assert(64 * trace::kMaxPcpus <= Batch::kMaxEntries);

}  // namespace

// Makes entries of the stream's items.
struct BatchSource::EntrySink {
  static constexpr bool kReportsRunningVcpu = true;
  BatchSource& source;
  Batch& batch;
  std::span<const Entry> carried;
  trace::Record record = {};
  uint16_t pcpu_index = 0;
  size_t end_of_pcpu = 0;  // the number of entries at which the pCPU has as many as it may have
  std::optional<Place> last = {};  // the last place of which the batch has all

  void BeginPcpu(PcpuId pcpu) {
    pcpu_index = source.index_of_[pcpu.value];
    end_of_pcpu = batch.entries.size() + source.most_of_pcpu_;
    while (!carried.empty() && carried.front().pcpu_index == pcpu_index) {
      batch.entries.push_back(carried.front());
      carried = carried.subspan(1);
    }
  }
  void EndPcpu(bool complete) {
    if (complete) return;
    const Place end(batch.entries.back().tsc, pcpu_index);
    last = std::min(last.value_or(end), end);
  }

  trace::Record& Slot(PcpuId pcpu) {
    record.pcpu = pcpu;
    return record;
  }
  bool CommitRecord(const std::optional<VcpuRef>& ran, const trace::AnyTarget& /*target*/) {
    Add(ItemKind::kRecord, record, ran, record.offset);
    return !Full();
  }
  bool Commit(const Item& item) {
    if (IsInFile(item.kind)) {
      Add(item.kind, item.record, item.current, item.record.offset);
    } else {
      Add(item.kind, item.record, item.current, batch.specials.size());
      batch.specials.push_back(item);
    }
    return !Full();
  }
  [[nodiscard]] bool Full() const { return batch.entries.size() >= end_of_pcpu; }

 private:
  void Add(ItemKind kind, const trace::Record& of, const std::optional<VcpuRef>& ran,
           uint64_t place) {
    PackedVcpu running_vcpu = kUnknownVcpu;
    if (kind == ItemKind::kLossBegin) {
      running_vcpu = kRecordsLost;
    } else if (ran) {
      running_vcpu = uint32_t{ran->domain.value} << 16 | (ran->vcpu.value & 0xffff);
    }
    batch.entries.push_back({.tsc = of.tsc,
                             .place = place,
                             .running_vcpu = running_vcpu,
                             .pcpu_index = pcpu_index,
                             .event_number = static_cast<uint8_t>(of.event),
                             .kind = kind});
  }
};

BatchSource::BatchSource(const trace::TraceFile& file, const DumpOptions& options,
                         const std::vector<PcpuId>& pcpus)
    : file_(file.bytes()),
      pcpus_(pcpus),
      most_of_pcpu_(MostOfPcpu(pcpus.size())),
      stream_(file.Stream()),
      through_(options.to == trace::OrderedStream::kEnd ? options.to : Tsc{options.to.value - 1}),
      span_(kFirstSpan),
      done_(options.to.value == 0),
      timeline_(exits_) {
  const bool shows_cycles =
      !options.raw && options.events.Shows(ItemKind::kRecord, Event::kHvmVmentry);
  for (size_t i = 0; i < trace::kEventCount; ++i) {
    const auto event = static_cast<Event>(i);
    uses_[i] = UseOf(event, shows_cycles);
    const bool is_wanted = uses_[i] != Use::kNone || options.events.Shows(ItemKind::kRecord, event);
    if (is_wanted) wanted_[i] = &trace::kAnyTarget;
  }
  running_vcpus_.assign(pcpus.size(), kUnknownVcpu);
  for (size_t i = 0; i < pcpus.size(); ++i) {
    const size_t number = pcpus[i].value;
    if (number >= index_of_.size()) index_of_.resize(number + 1);
    index_of_[number] = static_cast<uint16_t>(i);
  }
}

bool BatchSource::Take(Batch& batch) {
  const std::lock_guard lock(mutex_);
  if (!Fill(batch)) return false;
  batch.number = next_number_++;
  batch.Sort();
  Follow(batch);
  return true;
}

// Returns false at the end.
bool BatchSource::Fill(Batch& batch) {
  batch.entries.clear();
  batch.specials = std::move(carried_specials_);
  carried_specials_.clear();
  const std::vector<Entry> carried = std::move(carried_);
  carried_.clear();
  batch.running_vcpus = running_vcpus_;
  if (done_) return false;
  EntrySink sink{*this, batch, carried};
  if (stream_.open_pcpus() == 0 && carried.empty()) {
    // Damages of the file itself come last and belong to no pCPU.
    sink.end_of_pcpu = most_of_pcpu_;
    if (through_ == trace::OrderedStream::kEnd) stream_.GiveDamages(sink);
    done_ = !sink.Full();
    batch.begin = batch.end = batch.entries.empty() ? Tsc{0} : batch.entries.front().tsc;
  } else {
    batch.begin = stream_.next_tsc();
    for (const Entry& entry : carried) batch.begin = std::min(batch.begin, entry.tsc);
    done_ = batch.begin > through_;
    if (done_) return false;
    const Tsc through = batch.end = std::min(through_, batch.begin + span_);
    if (!carried.empty()) sink.last = Place(through, ~uint16_t{0});
    stream_.FillByPcpu(through, wanted_, sink);
    if (sink.last) Carry(batch, *sink.last);
    AdaptSpan(batch.entries.size(), sink.last.value_or(Place(through, 0)).first - batch.begin);
  }
  for (const Entry& entry : batch.entries) {
    running_vcpus_[entry.pcpu_index] = entry.running_vcpu;
  }
  return true;
}

void BatchSource::AdaptSpan(size_t entries, Cycles span) {
  constexpr Cycles kMostTimes = 8;
  const Cycles wanted = (span + 1) * kUsualEntries / std::max(entries, size_t{1});
  span_ = std::clamp(wanted, span_ / kMostTimes + 1, std::min(span_ * kMostTimes, Batch::kMaxSpan));
}

void BatchSource::Carry(Batch& batch, Place last) {
  std::erase_if(batch.entries, [&](const Entry& entry) {
    if (Place(entry.tsc, entry.pcpu_index) <= last) return false;
    Entry& kept = carried_.emplace_back(entry);
    if (!IsInFile(entry.kind)) {
      kept.place = carried_specials_.size();
      carried_specials_.push_back(batch.specials[entry.place]);
    }
    return true;
  });
}

BatchSource::Use BatchSource::UseOf(Event event, bool shows_cycles) const {
  switch (event) {
    case Event::kHvmVmexit:
    case Event::kHvmSvmExit:
      return shows_cycles ? Use::kExit : Use::kNone;
    case Event::kHvmVmentry:
      return shows_cycles ? Use::kEntry : Use::kNone;
    default:
      return timeline_.Handles(event) ? Use::kTimeline : Use::kNone;
  }
}

void BatchSource::Follow(Batch& batch) {
  batch.exit_cycles.clear();
  batch.ForEach([&](const Entry& entry) {
    last_ = entry.tsc;
    if (entry.kind != ItemKind::kRecord) {
      if (!IsInFile(entry.kind)) FollowNonRecord(batch.specials[entry.place]);
      return;
    }
    const PcpuId pcpu = pcpus_[entry.pcpu_index];
    switch (uses_[entry.event_number]) {
      case Use::kNone:
        return;
      case Use::kTimeline:
        record_.pcpu = pcpu;
        trace::ReadAgain(file_, entry.place, entry.event(), entry.tsc, record_);
        return timeline_.TakeRecord(record_);
      case Use::kExit:
        return exits_.Begin(timeline_.Current(pcpu), entry.tsc);
      case Use::kEntry:
        batch.exit_cycles.push_back(exits_.End(timeline_.Current(pcpu), entry.tsc));
        return;
    }
  });
}

void BatchSource::FollowNonRecord(const Item& item) {
  timeline_.TakeNonRecord(item);
  // The vCPU that runs when records come again has been in its guest meanwhile, or not.
  if (item.kind == ItemKind::kLost) exits_.Forget(timeline_.Current(item.record.pcpu));
}

}  // namespace xenoscope::report
