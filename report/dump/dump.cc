// Filters the records and divides the work over threads.
//
// Ordering is serial and cheap (about a tenth of the work). The threads take turns at the one
// ordered stream. A thread fills a batch of entries (24 bytes each) and leaves the stream to the
// next thread. It then turns its batch into text, waits until the batches before have been written,
// and writes. The threads share only the turn. Each thread needs the memory of one batch and its
// text. An entry does not hold the whole record: the thread reads the rest from the file again,
// which is in the cache by then.
#include "report/dump/dump.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/spelling.h"
#include "correlate/timeline.h"
#include "report/dump/dump_line.h"
#include "report/dump/line_buffer.h"
#include "trace/events.h"
#include "trace/fields.h"
#include "trace/ordered_stream.h"
#include "trace/record.h"

namespace xenoscope::report {
namespace {

using trace::Event;
using trace::Item;
using trace::ItemKind;

constexpr size_t kBatchEntries = 16384;
constexpr size_t kUsualLineBytes = 80;

// An item in a batch. Records are read from the file again.
struct Entry {
  const std::byte* at;  // the record's header; null for an item that has none
  uint64_t tsc;         // the time; the index into Batch::specials when `at` is null
  PackedVcpu running_vcpu;
  uint16_t pcpu_index;
  uint8_t event;
  ItemKind kind;
};
static_assert(sizeof(Entry) == 24);

struct Batch {
  uint64_t number = 0;
  // the vCPUs before the first entry, by the index of the pCPU
  std::vector<PackedVcpu> running_vcpus;
  std::vector<Entry> entries;
  std::vector<Item> specials;
  // the cycles since the VMEXIT, of each entry that is a VMENTRY; empty when they are not shown
  std::vector<std::optional<Cycles>> exit_cycles;
};

bool IsEntry(const Entry& entry) {
  return entry.kind == ItemKind::kRecord && static_cast<Event>(entry.event) == Event::kHvmVmentry;
}

bool IsInFile(ItemKind kind) {
  return kind == ItemKind::kRecord || kind == ItemKind::kUnknownEvent ||
         kind == ItemKind::kMalformed;
}

// A count of changes from a runstate that the vCPU was not in. Such a change says that records are
// missing or that clocks differ.
class Contradictions {
 public:
  void Take(ItemKind kind, const trace::Record& record) {
    if (kind == ItemKind::kLossBegin || kind == ItemKind::kDamaged) {
      states_.clear();  // any vCPU may have changed its runstate
      return;
    }
    if (record.event != Event::kRunstateChange || kind != ItemKind::kRecord) return;
    const uint32_t vcpu = record.payload.Word(0);
    const auto known = states_.find(vcpu);
    if (known != states_.end()) {
      if (known->second != trace::RunstateOld(record.id)) times_.Add(record.tsc);
      known->second = trace::RunstateNew(record.id);
    } else if (states_.size() < kMaxVcpus) {
      states_.emplace(vcpu, trace::RunstateNew(record.id));
    }
  }
  const correlate::TimeSpans& times() const { return times_; }

 private:
  static constexpr size_t kMaxVcpus = 65536;
  // the states, by the first word of RUNSTATE_CHANGE
  absl::flat_hash_map<uint32_t, trace::Runstate> states_;
  correlate::TimeSpans times_;
};

// An observer for a timeline that is asked for open exits only.
class NoObserver final : public correlate::TimelineObserver {
 public:
  [[nodiscard]] bool WantsSegments() const override { return false; }
  [[nodiscard]] bool WantsMarks() const override { return false; }
};

// The one ordered stream of the trace. Threads take batches from it in turn.
class BatchSource {
 public:
  BatchSource(const trace::TraceFile& file, const DumpOptions& options,
              const std::vector<PcpuId>& pcpus)
      : bytes_(file.bytes()),
        stream_(file.Stream()),
        exits_(null_observer_),
        follows_exits_(!options.raw && options.events.Shows(ItemKind::kRecord, Event::kHvmVmentry)),
        wanted_(WantedBy(options.events)),
        from_(options.from),
        through_(options.to == trace::OrderedStream::kEnd ? options.to : Tsc{options.to.value - 1}),
        done_(options.to.value == 0) {
    running_vcpus_.assign(pcpus.size(), kUnknownVcpu);
    for (size_t i = 0; i < pcpus.size(); ++i) {
      const size_t number = pcpus[i].value;
      if (number >= index_of_.size()) index_of_.resize(number + 1);
      index_of_[number] = static_cast<uint16_t>(i);
    }
  }

  // Takes the next batch. Returns false at the end. Thread-safe.
  bool Take(Batch& batch) {
    const std::lock_guard lock(mutex_);
    batch.entries.clear();
    batch.specials.clear();
    batch.exit_cycles.clear();
    batch.running_vcpus = running_vcpus_;
    if (done_) return false;
    EntrySink sink{*this, batch, {}};
    stream_.Fill<true, trace::RecordOrder::kTime>(through_, wanted_, sink);
    done_ = !sink.Full();
    batch.number = next_number_++;
    return true;
  }

  // Returns the result for the batches that were taken so far. No thread may take a batch during
  // the call.
  DumpResult Result() const { return {contradictions_.times(), last_}; }

 private:
  // A sink that makes entries of the stream's items.
  struct EntrySink {
    static constexpr bool kReportsRunningVcpu = true;
    BatchSource& source;
    Batch& batch;
    trace::Record record;

    trace::Record& Slot(PcpuId pcpu) {
      record.pcpu = pcpu;
      return record;
    }
    bool CommitRecord(const std::optional<VcpuRef>& ran, const trace::AnyTarget& /*target*/) {
      source.Add(ItemKind::kRecord, record, ran, nullptr, batch);
      return !Full();
    }
    bool Commit(const Item& item) {
      source.Add(item.kind, item.record, item.current, &item, batch);
      return !Full();
    }
    bool Full() const { return batch.entries.size() == kBatchEntries; }
  };

  // Returns the events that are shown, the events that say which vCPU runs, which every line shows,
  // and those that say which exit an entry ends.
  trace::EventTargets<trace::AnyTarget> WantedBy(const EventFilter& filter) const {
    trace::EventTargets<trace::AnyTarget> wanted{};
    for (size_t i = 0; i < trace::kEventCount; ++i) {
      const auto event = static_cast<Event>(i);
      const bool has_runstate = event == Event::kRunstateChange || event == Event::kContinueRunning;
      const bool of_exit = follows_exits_ && exits_.Handles(event);
      if (has_runstate || of_exit || filter.Shows(ItemKind::kRecord, event)) {
        wanted[i] = &trace::kAnyTarget;
      }
    }
    return wanted;
  }

  void Add(ItemKind kind, const trace::Record& record, const std::optional<VcpuRef>& ran,
           const Item* item, Batch& batch) {
    contradictions_.Take(kind, record);
    last_ = std::max(last_, record.tsc);
    std::optional<Cycles> exit_cycles;
    if (follows_exits_ && (kind != ItemKind::kRecord || exits_.Handles(record.event))) {
      exit_cycles = FollowExit(kind, record, item);
    }
    // Damages of the file itself come last and belong to no pCPU.
    const size_t pcpu_index =
        record.pcpu.value < index_of_.size() ? index_of_[record.pcpu.value] : 0;
    PackedVcpu running_vcpu = kUnknownVcpu;
    if (kind == ItemKind::kLossBegin) {
      running_vcpu = kRecordsLost;
    } else if (ran) {
      running_vcpu = uint32_t{ran->domain.value} << 16 | (ran->vcpu.value & 0xffff);
    }
    const bool shown = record.tsc >= from_;
    if (running_vcpus_[pcpu_index] != running_vcpu) {
      running_vcpus_[pcpu_index] = running_vcpu;
      if (!shown) batch.running_vcpus[pcpu_index] = running_vcpu;
    }
    if (!shown) return;
    Entry entry{.at = nullptr,
                .tsc = record.tsc.value,
                .running_vcpu = running_vcpu,
                .pcpu_index = static_cast<uint16_t>(pcpu_index),
                .event = static_cast<uint8_t>(record.event),
                .kind = kind};
    if (IsInFile(kind)) {
      entry.at = bytes_.data() + record.offset;
    } else {
      entry.tsc = batch.specials.size();
      batch.specials.push_back(*item);
    }
    batch.entries.push_back(entry);
    // Does not read the entry, whose parts have just been stored.
    if (follows_exits_ && kind == ItemKind::kRecord && record.event == Event::kHvmVmentry) {
      batch.exit_cycles.push_back(exit_cycles);
    }
  }

  // Returns the cycles since the exit that the record ends, if it is a VMENTRY and its VMEXIT was
  // seen.
  // Not inlined: Add is faster without the code for the few records that change anything here.
  [[gnu::noinline]] std::optional<Cycles> FollowExit(ItemKind kind, const trace::Record& record,
                                                     const Item* item) {
    if (kind != ItemKind::kRecord) {
      if (item != nullptr) exits_.Take(*item);
      return std::nullopt;
    }
    std::optional<Cycles> cycles;
    if (record.event == Event::kHvmVmentry) {
      const correlate::VcpuTrack* vcpu = exits_.Current(record.pcpu);
      if (vcpu != nullptr && vcpu->exit_open) cycles = record.tsc - vcpu->exit_tsc;
    }
    exits_.TakeRecord(record);
    return cycles;
  }

  std::mutex mutex_;
  Bytes bytes_;
  trace::OrderedStream stream_;
  NoObserver null_observer_;
  correlate::Timeline exits_;  // which exit of which vCPU is open
  bool follows_exits_;
  trace::EventTargets<trace::AnyTarget> wanted_;
  Tsc from_;
  Tsc through_;
  std::vector<uint16_t> index_of_;         // the pCPUs' indices, by the number of the pCPU
  std::vector<PackedVcpu> running_vcpus_;  // the vCPUs that run, by the index of the pCPU
  Contradictions contradictions_;
  Tsc last_;
  uint64_t next_number_ = 0;
  bool done_;
};

// A sink that writes the texts of all threads in the order of their batches.
class OrderedSink {
 public:
  explicit OrderedSink(const DumpSink& sink) : sink_(sink) {}

  // Waits for the batches before `number`, then writes. Returns false when the dump has stopped.
  bool Write(uint64_t number, std::string_view text) {
    std::unique_lock lock(mutex_);
    order_changed_.wait(lock, [&] { return next_ == number || stopped_; });
    if (stopped_) return false;
    lock.unlock();  // no other thread can have the turn
    absl::StatusOr<bool> result = text.empty() ? true : sink_(text);
    lock.lock();
    if (!result.ok()) status_ = result.status();
    stopped_ = !result.ok() || !*result;
    ++next_;
    order_changed_.notify_all();
    return !stopped_;
  }

  const absl::Status& status() const { return status_; }

 private:
  const DumpSink& sink_;
  std::mutex mutex_;
  std::condition_variable order_changed_;
  uint64_t next_ = 0;
  bool stopped_ = false;
  absl::Status status_;
};

template <typename T>
bool Among(const std::vector<T>& wanted, T one) {
  return std::find(wanted.begin(), wanted.end(), one) != wanted.end();
}

// A filter that chooses the entries that become lines.
class Filter {
 public:
  explicit Filter(const DumpOptions& options, const std::vector<PcpuId>& pcpus)
      : options_(options),
        all_records_(options.events.ShowsAllRecords() && options.pcpus.empty() &&
                     options.domains.empty() && options.vcpus.empty()),
        pcpus_(pcpus.size()) {
    for (size_t i = 0; i < pcpus.size(); ++i) pcpus_[i] = options.Selects(pcpus[i]);
  }

  // Whether every record becomes a line.
  bool AllRecords() const { return all_records_; }

  bool ByEntry(const Entry& entry) const {
    return entry.kind != ItemKind::kPcpuBegin && entry.kind != ItemKind::kPcpuEnd &&
           options_.events.Shows(entry.kind, static_cast<Event>(entry.event)) &&
           pcpus_[entry.pcpu_index];
  }

  bool ByItem(const Item& item, PackedVcpu running_vcpu) const {
    if (options_.domains.empty() && options_.vcpus.empty()) return true;
    if (IsVcpu(running_vcpu) && options_.Selects(UnpackRunningVcpu(running_vcpu))) return true;
    if (item.kind != ItemKind::kRecord) return false;
    bool named = false;
    trace::VisitFields(item.record, options_.dialect, [&](const trace::Field& field) {
      switch (field.type) {
        case trace::FieldType::kVcpuDomain:
        case trace::FieldType::kDomainVcpu:
        case trace::FieldType::kDomainVcpu2:
          named = named || options_.Selects(trace::FieldVcpu(field));
          break;
        case trace::FieldType::kDomain:
          named = named || (options_.vcpus.empty() &&
                            Among(options_.domains, DomainId{static_cast<uint16_t>(field.value)}));
          break;
        default:
          break;
      }
    });
    return named;
  }

 private:
  const DumpOptions& options_;
  bool all_records_;
  std::vector<bool> pcpus_;
};

std::unique_ptr<LineWriter> MakeWriter(const DumpOptions& options,
                                       const std::vector<PcpuId>& pcpus) {
  switch (options.format) {
    case DumpFormat::kJson:
      return MakeJsonWriter(options);
    case DumpFormat::kCsv:
      return MakeCsvWriter(options);
    case DumpFormat::kText:
      break;
  }
  return MakeTextWriter(options, pcpus);
}

// The work of one thread: it turns batches into text.
class Worker {
 public:
  Worker(const trace::TraceFile& file, const DumpOptions& options, const std::vector<PcpuId>& pcpus)
      : bytes_(file.bytes()),
        pcpus_(pcpus),
        filter_(options, pcpus),
        writer_(MakeWriter(options, pcpus)),
        running_vcpus_(pcpus.size(), kUnknownVcpu),
        out_(kBatchEntries * kUsualLineBytes) {
    batch_.entries.reserve(kBatchEntries);
  }

  void Run(BatchSource& source, OrderedSink& sink) {
    while (source.Take(batch_)) {
      out_.Clear();
      if (batch_.number == 0) writer_->Begin(out_);
      for (size_t i = 0; i < running_vcpus_.size(); ++i) SetRunningVcpu(i, batch_.running_vcpus[i]);
      exit_cycles_ = batch_.exit_cycles.begin();
      for (const Entry& entry : batch_.entries) Print(entry);
      if (!sink.Write(batch_.number, out_.text())) return;
    }
  }

 private:
  void SetRunningVcpu(size_t pcpu_index, PackedVcpu running_vcpu) {
    if (running_vcpus_[pcpu_index] == running_vcpu) return;
    running_vcpus_[pcpu_index] = running_vcpu;
    writer_->SetRunningVcpu(pcpu_index, running_vcpu);
  }

  void Print(const Entry& entry) {
    SetRunningVcpu(entry.pcpu_index, entry.running_vcpu);
    const bool ends_exit = !batch_.exit_cycles.empty() && IsEntry(entry);
    const std::optional<Cycles> exit_cycles = ends_exit ? *exit_cycles_++ : std::nullopt;
    if (filter_.AllRecords() && entry.kind == ItemKind::kRecord) [[likely]] {
      Load(entry);
      return Write(item_, entry, exit_cycles);
    }
    if (!filter_.ByEntry(entry)) return;
    const Item* item = &item_;
    if (entry.at != nullptr) {
      Load(entry);
    } else {
      item = &batch_.specials[entry.tsc];
    }
    if (filter_.ByItem(*item, entry.running_vcpu)) Write(*item, entry, exit_cycles);
  }

  void Write(const Item& item, const Entry& entry, std::optional<Cycles> exit_cycles) {
    writer_->Write({.item = &item,
                    .pcpu_index = entry.pcpu_index,
                    .running_vcpu = entry.running_vcpu,
                    .exit_cycles = exit_cycles},
                   out_);
  }

  // Reads the entry's record from the file.
  void Load(const Entry& entry) {
    const trace::FirstWord header{LoadUnchecked<uint32_t>(entry.at)};
    trace::Record& record = item_.record;
    item_.kind = entry.kind;
    record.tsc = Tsc{entry.tsc};
    record.offset = static_cast<uint64_t>(entry.at - bytes_.data());
    record.id = header.id();
    record.event = static_cast<Event>(entry.event);
    record.has_tsc = header.has_tsc();
    record.pcpu = pcpus_[entry.pcpu_index];
    record.payload = trace::Payload(entry.at + header.PayloadOffset(), header.words());
  }

  Bytes bytes_;
  const std::vector<PcpuId>& pcpus_;
  Filter filter_;
  std::unique_ptr<LineWriter> writer_;
  // the vCPUs that the writer knows, by the index of the pCPU
  std::vector<PackedVcpu> running_vcpus_;
  Batch batch_;
  std::vector<std::optional<Cycles>>::const_iterator exit_cycles_;  // of the next VMENTRY
  Item item_;
  LineBuffer out_;
};

struct KindWord {
  std::string_view word;
  std::array<ItemKind, 2> kinds;
};
constexpr KindWord kKindWords[] = {
    {"lost", {ItemKind::kLost, ItemKind::kLossBegin}},
    {"damaged", {ItemKind::kDamaged, ItemKind::kDamaged}},
    {"unknown", {ItemKind::kUnknownEvent, ItemKind::kUnknownEvent}},
    {"malformed", {ItemKind::kMalformed, ItemKind::kMalformed}},
    {"wrap", {ItemKind::kWrap, ItemKind::kWrap}},
};

// The words that --event accepts, without patterns.
std::vector<std::string_view> EventWords() {
  std::vector<std::string_view> words;
  for (const KindWord& known : kKindWords) words.push_back(known.word);
  for (size_t event = 1; event < trace::kEventCount; ++event) {
    const trace::EventInfo& info = trace::Info(static_cast<Event>(event));
    words.insert(words.end(), {info.name, ToString(info.trace_class), ToString(info.subclass)});
  }
  return words;
}

// Whether a word of --event means the event: by a name or glob, a class, or a subclass.
bool Matches(const std::string& word, const trace::EventInfo& info) {
  if (fnmatch(word.c_str(), std::string(info.name).c_str(), 0) == 0) return true;
  return word == ToString(info.trace_class) || word == ToString(info.subclass);
}

}  // namespace

bool DumpOptions::Selects(VcpuRef vcpu) const {
  return (domains.empty() || Among(domains, vcpu.domain)) &&
         (vcpus.empty() || Among(vcpus, vcpu.vcpu));
}

bool DumpOptions::Selects(PcpuId pcpu) const { return pcpus.empty() || Among(pcpus, pcpu); }

absl::StatusOr<EventFilter> EventFilter::Parse(const std::vector<std::string>& words) {
  EventFilter filter;
  if (words.empty()) return filter;
  filter.events_.reset();
  filter.kinds_ = 0;
  for (const std::string& word : words) {
    bool found = false;
    for (const KindWord& known : kKindWords) {
      if (word != known.word) continue;
      found = true;
      for (const ItemKind kind : known.kinds) filter.kinds_ |= 1U << static_cast<unsigned>(kind);
    }
    for (size_t event = 1; event < trace::kEventCount; ++event) {
      if (!Matches(word, trace::Info(static_cast<Event>(event)))) continue;
      filter.events_.set(event);
      found = true;
    }
    if (!found) {
      return InvalidError("no event, class or pattern {}{}", word,
                          SpellingHint(word, EventWords()));
    }
  }
  return filter;
}

absl::StatusOr<DumpResult> Dump(const trace::TraceFile& file, const DumpOptions& options,
                                const DumpSink& sink) {
  std::vector<PcpuId> pcpus;
  for (const trace::PcpuWindows& pcpu : file.index().pcpus) pcpus.push_back(pcpu.pcpu);
  if (pcpus.empty()) pcpus.emplace_back();  // damages of the file itself need a pCPU
  BatchSource source(file, options, pcpus);
  OrderedSink ordered(sink);
  const auto work = [&] { Worker(file, options, pcpus).Run(source, ordered); };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < options.threads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (!ordered.status().ok()) return ordered.status();
  return source.Result();
}

}  // namespace xenoscope::report
