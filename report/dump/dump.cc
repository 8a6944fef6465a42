// Filters the records and divides the work over threads.
//
// A thread takes a batch of entries, turns it into text, and gives this to the sink. One thread at
// a time takes a batch, and one writes; to turn batches into text is most of the work. Each thread
// needs the memory of one batch and a few texts. An entry does not hold the whole record: the
// thread reads the rest from the file again, which is in the cache by then.
#include "report/dump/dump.h"

#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/spelling.h"
#include "report/dump/batch.h"
#include "report/dump/batch_source.h"
#include "report/dump/dump_line.h"
#include "report/dump/line_buffer.h"
#include "trace/events.h"
#include "trace/fields.h"
#include "trace/record.h"

namespace xenoscope::report {
namespace {

using trace::Event;
using trace::Item;
using trace::ItemKind;

constexpr size_t kUsualTextBytes = size_t{1} << 20;

// Writes the texts of all threads in the order of their batches. A text waits here for those before
// it, so that its thread need not, as batches differ in size.
class OrderedSink {
 public:
  OrderedSink(const DumpSink& sink, unsigned threads) : sink_(sink), waiting_(2 * threads) {}

  // Takes the text, for which the thread gets another buffer: writes it, and those behind it that
  // wait, unless another thread does. Waits if too many wait already. Returns false when the dump
  // has stopped.
  bool Write(uint64_t number, LineBuffer& text) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return number - next_ < waiting_.size() || stopped_; });
    if (stopped_) return false;
    Text& own = TextOf(number);
    std::swap(own.lines, text);
    own.is_ready = true;
    if (!is_writing_) WriteReady(lock);
    return !stopped_;
  }

  const absl::Status& status() const { return status_; }

 private:
  struct Text {
    LineBuffer lines{kUsualTextBytes};
    bool is_ready = false;
  };

  Text& TextOf(uint64_t number) { return waiting_[number % waiting_.size()]; }

  void WriteReady(std::unique_lock<std::mutex>& lock) {
    is_writing_ = true;
    while (!stopped_ && TextOf(next_).is_ready) {
      Text& text = TextOf(next_);
      lock.unlock();
      const absl::StatusOr<bool> wants_more =
          text.lines.size() == 0 ? true : sink_(text.lines.text());
      lock.lock();
      if (!wants_more.ok()) status_ = wants_more.status();
      stopped_ = !wants_more.ok() || !*wants_more;
      text.is_ready = false;
      ++next_;
      changed_.notify_all();
    }
    is_writing_ = false;
  }

  const DumpSink& sink_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // All below are guarded by mutex_, but the lines of texts that are ready.
  std::vector<Text> waiting_;  // by the number of the batch, modulo their number
  uint64_t next_ = 0;          // the number of the batch to write next
  bool is_writing_ = false;
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
           options_.events.Shows(entry.kind, entry.event()) && pcpus_[entry.pcpu_index];
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
        from_(options.from),
        out_(kUsualTextBytes) {}

  void Run(BatchSource& source, OrderedSink& sink) {
    while (source.Take(batch_)) {
      out_.Clear();
      if (batch_.number == 0) writer_->Begin(out_);
      exit_cycles_ = batch_.exit_cycles.begin();
      const size_t before = batch_.CountBefore(from_);
      batch_.ForEach(0, before, [this](const Entry& entry) { PassOver(entry); });
      for (size_t i = 0; i < running_vcpus_.size(); ++i) SetRunningVcpu(i, batch_.running_vcpus[i]);
      batch_.ForEach(before, batch_.entries.size(), [this](const Entry& entry) { Print(entry); });
      if (!sink.Write(batch_.number, out_)) return;
    }
  }

 private:
  void SetRunningVcpu(size_t pcpu_index, PackedVcpu running_vcpu) {
    if (running_vcpus_[pcpu_index] == running_vcpu) return;
    running_vcpus_[pcpu_index] = running_vcpu;
    writer_->SetRunningVcpu(pcpu_index, running_vcpu);
  }

  // Notes what is not shown, as it is before the first time that is.
  void PassOver(const Entry& entry) {
    batch_.running_vcpus[entry.pcpu_index] = entry.running_vcpu;
    if (HasExitCycles(entry)) ++exit_cycles_;
  }

  bool HasExitCycles(const Entry& entry) const {
    return !batch_.exit_cycles.empty() && IsEntry(entry);
  }

  void Print(const Entry& entry) {
    SetRunningVcpu(entry.pcpu_index, entry.running_vcpu);
    const Cycles exit_cycles = HasExitCycles(entry) ? *exit_cycles_++ : kNoExit;
    if (filter_.AllRecords() && entry.kind == ItemKind::kRecord) [[likely]] {
      return Write(Load(entry), entry, exit_cycles);
    }
    if (!filter_.ByEntry(entry)) return;
    const Item& item = IsInFile(entry.kind) ? Load(entry) : batch_.specials[entry.place];
    if (filter_.ByItem(item, entry.running_vcpu)) Write(item, entry, exit_cycles);
  }

  void Write(const Item& item, const Entry& entry, Cycles exit_cycles) {
    writer_->Write({.item = &item,
                    .pcpu_index = entry.pcpu_index,
                    .running_vcpu = entry.running_vcpu,
                    .exit_cycles = exit_cycles},
                   out_);
  }

  // Reads the entry's record from the file.
  const Item& Load(const Entry& entry) {
    item_.kind = entry.kind;
    item_.record.pcpu = pcpus_[entry.pcpu_index];
    trace::ReadAgain(bytes_, entry.place, entry.event(), entry.tsc, item_.record);
    return item_;
  }

  Bytes bytes_;
  const std::vector<PcpuId>& pcpus_;
  Filter filter_;
  std::unique_ptr<LineWriter> writer_;
  // the vCPUs that the writer knows, by the index of the pCPU
  std::vector<PackedVcpu> running_vcpus_;
  Tsc from_;
  Batch batch_;
  std::vector<Cycles>::const_iterator exit_cycles_;  // of the next VMENTRY
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
  OrderedSink ordered(sink, options.threads);
  const auto work = [&] { Worker(file, options, pcpus).Run(source, ordered); };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < options.threads; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (!ordered.status().ok()) return ordered.status();
  return source.Result();
}

}  // namespace xenoscope::report
