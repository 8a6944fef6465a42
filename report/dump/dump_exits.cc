#include "report/dump/dump_exits.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/hash.h"
#include "base/ids.h"
#include "correlate/exit_contents.h"
#include "correlate/timeline.h"
#include "correlate/timeline_pass.h"
#include "report/dump/dump_line.h"
#include "report/dump/line_buffer.h"
#include "report/exit_names.h"
#include "trace/events.h"
#include "trace/exit_name.h"
#include "trace/ordered_stream.h"
#include "trace/record.h"

namespace xenoscope::report {
namespace {

using correlate::ExitArc;
using correlate::ExitContents;
using correlate::VcpuTrack;
using trace::Event;
using trace::Item;
using trace::ItemKind;

// An exit that has ended, and what its handler recorded.
struct EndedExit {
  const ExitArc& arc;
  const ExitContents& contents;
};

// The names of reasons and subreasons. A name is made once for most exits: there are few different
// ones.
class ExitNames {
 public:
  explicit ExitNames(trace::Vendor vendor) : vendor_(vendor) {}

  // The results are valid until the next call.
  std::string_view Reason(uint32_t reason) {
    Name& name = SlotOf(kReason, reason);
    if (name.kind != kReason || name.number != reason) {
      name = {kReason, reason, trace::ExitName(vendor_, /*nested=*/false, reason)};
    }
    return name.text;
  }
  std::string_view Subreason(const ExitContents& contents) {
    const auto kind = static_cast<uint32_t>(contents.kind);
    Name& name = SlotOf(kind, contents.number);
    if (name.kind != kind || name.number != contents.number) {
      name = {kind, contents.number, SubreasonName(contents.kind, contents.number)};
    }
    return name.text;
  }

 private:
  static constexpr unsigned kSlotBits = 10;
  static constexpr uint32_t kReason = 0x100;  // no ExitKind
  static constexpr uint32_t kNone = 0x101;
  struct Name {
    uint32_t kind = kNone;
    uint64_t number = 0;
    std::string text;
  };
  Name& SlotOf(uint32_t kind, uint64_t number) {
    return slots_[MultiplyHash(number ^ uint64_t{kind} << 48) >> (64 - kSlotBits)];
  }

  trace::Vendor vendor_;
  std::array<Name, size_t{1} << kSlotBits> slots_;
};

// Writes the lines of exits in one format.
class ExitWriter {
 public:
  explicit ExitWriter(const DumpOptions& options)
      : format_(options.format),
        names_(options.dialect.vendor),
        clock_(options.clock, options.zero) {}

  void Begin(LineBuffer& out) const {
    if (format_ != DumpFormat::kCsv) return;
    out.Reserve(kMaxLineBytes);
    out.Put(
        "tsc,seconds,pcpu,domid,vcpu,offset,nested,reason,reason_name,subreason,rip,cycles,"
        "finished\n");
  }

  void Write(const EndedExit& exit, LineBuffer& out) {
    out.Reserve(kMaxLineBytes);
    switch (format_) {
      case DumpFormat::kText:
        return WriteText(exit, out);
      case DumpFormat::kJson:
        return WriteJson(exit, out);
      case DumpFormat::kCsv:
        return WriteCsv(exit, out);
    }
  }

 private:
  void WriteText(const EndedExit& exit, LineBuffer& out) {
    const ExitArc& arc = exit.arc;
    constexpr uint32_t kTwoDigits = 10;
    constexpr uint32_t kThreeDigits = 100;
    const LineClock::Time time = clock_.At(arc.range.begin);
    if (time.seconds < kThreeDigits) out.Put(' ');
    if (time.seconds < kTwoDigits) out.Put(' ');
    PutSeconds(time, out);
    out.Put(" p");
    out.PutDecimal(arc.pcpu.value);
    out.Put(" d");
    out.PutDecimal(arc.vcpu.domain.value);
    out.Put('v');
    out.PutDecimal(arc.vcpu.vcpu.value);
    out.Put(arc.nested ? " nested " : " ");
    out.Put(names_.Reason(arc.reason));
    out.Put(' ');
    out.Put(names_.Subreason(exit.contents));
    out.Put(" rip ");
    out.PutHexPrefixed(arc.rip);
    out.Put(" cycles ");
    out.PutDecimal(arc.range.Length());
    out.Put(arc.finished ? "\n" : " unfinished\n");
  }

  void WriteJson(const EndedExit& exit, LineBuffer& out) {
    const ExitArc& arc = exit.arc;
    out.Put(R"({"tsc":)");
    out.PutDecimal(arc.range.begin.value);
    out.Put(R"(,"seconds":)");
    PutSeconds(clock_.At(arc.range.begin), out);
    out.Put(R"(,"pcpu":)");
    out.PutDecimal(arc.pcpu.value);
    out.Put(R"(,"domid":)");
    out.PutDecimal(arc.vcpu.domain.value);
    out.Put(R"(,"vcpu":)");
    out.PutDecimal(arc.vcpu.vcpu.value);
    out.Put(R"(,"offset":)");
    out.PutDecimal(arc.exit);
    out.Put(arc.nested ? R"(,"nested":true,"reason":)" : R"(,"nested":false,"reason":)");
    out.PutDecimal(arc.reason);
    out.Put(R"(,"reason_name":")");
    out.Put(names_.Reason(arc.reason));
    out.Put(R"(","subreason":")");
    out.Put(names_.Subreason(exit.contents));
    out.Put(R"(","rip":")");
    out.PutHexPrefixed(arc.rip);
    out.Put(R"(","cycles":)");
    out.PutDecimal(arc.range.Length());
    out.Put(arc.finished ? ",\"finished\":true}\n" : ",\"finished\":false}\n");
  }

  void WriteCsv(const EndedExit& exit, LineBuffer& out) {
    const ExitArc& arc = exit.arc;
    const auto put = [&out](uint64_t number) {
      out.PutDecimal(number);
      out.Put(',');
    };
    put(arc.range.begin.value);
    PutSeconds(clock_.At(arc.range.begin), out);
    out.Put(',');
    put(arc.pcpu.value);
    put(arc.vcpu.domain.value);
    put(arc.vcpu.vcpu.value);
    put(arc.exit);
    put(arc.nested ? 1 : 0);
    put(arc.reason);
    out.Put(names_.Reason(arc.reason));
    out.Put(",\"");  // the words have commas
    out.Put(names_.Subreason(exit.contents));
    out.Put("\",");
    out.PutHexPrefixed(arc.rip);
    out.Put(',');
    put(arc.range.Length());
    out.Put(arc.finished ? "1\n" : "0\n");
  }

  DumpFormat format_;
  ExitNames names_;
  LineClock clock_;
};

// What a record is needed for.
enum class RecordUse : uint8_t {
  kTimeline,  // it changes which vCPU runs, or begins or ends an exit
  kHandler,   // it says what an exit was about
};
constexpr RecordUse kForTimeline = RecordUse::kTimeline;
constexpr RecordUse kForHandler = RecordUse::kHandler;

// Follows the exits of all vCPUs, and writes each when it is known what its handler recorded: at
// the VMENTRY, at the vCPU's next exit, or when it is cut off.
class ExitDumper final : public correlate::TimelineObserver {
 public:
  ExitDumper(const DumpOptions& options, const trace::WindowIndex& windows, LineBuffer& out)
      : options_(options), writer_(options), out_(out), timeline_(*this) {
    result_.unread.CountBetween(windows);
    writer_.Begin(out_);
  }

  [[nodiscard]] bool WantsSegments() const override { return false; }
  [[nodiscard]] bool WantsMarks() const override { return false; }

  // Returns the events of the records that are to be taken.
  trace::EventTargets<RecordUse> Wanted() const {
    auto wanted = correlate::HandledEvents(timeline_, kForTimeline);
    for (const Event event : correlate::HandlerEvents()) {
      wanted[static_cast<size_t>(event)] = &kForHandler;
    }
    return wanted;
  }

  void TakeRecord(const trace::Record& record, RecordUse use) {
    result_.last = std::max(result_.last, record.tsc);
    if (use == RecordUse::kHandler) return TakeHandlerRecord(record);
    timeline_.TakeRecord(record);
    if (record.event != Event::kHvmVmentry) return;
    const VcpuTrack* vcpu = timeline_.Current(record.pcpu);
    if (vcpu != nullptr) Write(OpenOf(vcpu->index));
  }

  void TakeNonRecord(const Item& item) {
    result_.last = std::max(result_.last, item.record.tsc);
    if (item.kind == ItemKind::kLost) result_.lost_records += item.lost;
    result_.unread.Count(item);
    timeline_.TakeNonRecord(item);
    if (awaits_ && item.kind == ItemKind::kLossBegin) done_ = !HasOpenExits();
  }

  // Looks from here on whether selected exits are open that began before the end of the selected
  // time.
  void AwaitOpenExits() {
    awaits_ = true;
    done_ = !HasOpenExits();
  }
  // Whether AwaitOpenExits was called and none of those exits is open any more.
  [[nodiscard]] bool done() const { return done_; }

  ExitDumpResult Finish() {
    timeline_.Finish();
    for (OpenExit& open : open_) Write(open);
    result_.without_vcpu = timeline_.faults().exits_without_vcpu;
    result_.contradictions = timeline_.faults().mismatches;
    return result_;
  }

  void OnExit(const ExitArc& arc) override {
    OpenExit& open = OpenOf(arc.vcpu_index);
    if (open.contents.exit != arc.exit) Begin(open, arc.exit);
    open.arc = arc;
    open.has_ended = true;
    if (!arc.finished) Write(open);
  }

 private:
  // The last exit of a vCPU.
  struct OpenExit {
    ExitContents contents;
    ExitArc arc;
    bool has_ended = false;  // `arc` is set, and the line has not been written
  };

  OpenExit& OpenOf(uint32_t vcpu_index) {
    if (vcpu_index >= open_.size()) open_.resize(vcpu_index + 1);
    return open_[vcpu_index];
  }

  void TakeHandlerRecord(const trace::Record& record) {
    const VcpuTrack* vcpu = timeline_.Current(record.pcpu);
    if (vcpu == nullptr || !vcpu->exit_open) {
      ++result_.outside;
      return;
    }
    OpenExit& open = OpenOf(vcpu->index);
    if (open.contents.exit != vcpu->exit) Begin(open, vcpu->exit);
    open.contents.Take(record);
  }

  void Begin(OpenExit& open, uint64_t exit) {
    Write(open);
    open.contents.Open(exit);
  }

  void Write(OpenExit& open) {
    if (!open.has_ended) return;
    open.has_ended = false;
    const ExitArc& arc = open.arc;
    if (!IsSelected(arc.vcpu, arc.pcpu, arc.range.begin)) return;
    ++result_.exits;
    if (!arc.finished) ++result_.unfinished;
    writer_.Write({arc, open.contents}, out_);
    if (awaits_) done_ = !HasOpenExits();
  }

  [[nodiscard]] bool IsSelected(VcpuRef vcpu, PcpuId pcpu, Tsc begin) const {
    return begin >= options_.from && begin < options_.to && options_.Selects(vcpu) &&
           options_.Selects(pcpu);
  }

  [[nodiscard]] bool HasOpenExits() const {
    return std::ranges::any_of(timeline_.vcpus(), [this](const auto& vcpu) {
      return vcpu->exit_open && IsSelected(vcpu->ref, vcpu->pcpu, vcpu->exit_tsc);
    });
  }

  const DumpOptions& options_;
  ExitWriter writer_;
  LineBuffer& out_;
  correlate::Timeline timeline_;
  std::vector<OpenExit> open_;  // by VcpuTrack::index
  ExitDumpResult result_;
  bool awaits_ = false;
  bool done_ = false;
};

// Gives what is wanted of the stream to the dumper, until a block of lines is full.
struct ExitSink {
  static constexpr bool kReportsRunningVcpu = false;
  static constexpr size_t kBlock = size_t{1} << 20;

  ExitDumper& dumper;
  const trace::EventTargets<RecordUse>& wanted;
  const LineBuffer& out;
  trace::Record record;

  trace::Record& Slot(PcpuId pcpu) {
    record.pcpu = pcpu;
    return record;
  }
  bool CommitRecord(const std::optional<VcpuRef>& /*ran*/, RecordUse use) {
    dumper.TakeRecord(record, use);
    return !Full();
  }
  bool Commit(const Item& item) {
    if (item.kind != ItemKind::kRecord) {
      dumper.TakeNonRecord(item);
    } else if (const RecordUse* use = wanted[static_cast<size_t>(item.record.event)]) {
      dumper.TakeRecord(item.record, *use);
    }
    return !Full();
  }
  [[nodiscard]] bool Full() const { return out.size() >= kBlock || dumper.done(); }
};

}  // namespace

absl::StatusOr<ExitDumpResult> DumpExits(const trace::TraceFile& file, const DumpOptions& options,
                                         const DumpSink& sink) {
  LineBuffer out(ExitSink::kBlock + kMaxLineBytes);
  ExitDumper dumper(options, file.index(), out);
  const trace::EventTargets<RecordUse> wanted = dumper.Wanted();
  trace::OrderedStream stream = file.Stream();
  ExitSink taker{dumper, wanted, out, {}};
  // Reads up to the time `through`, or until the dumper is done. Returns false if the sink stopped
  // the dump.
  const auto read = [&](Tsc through) -> absl::StatusOr<bool> {
    for (;;) {
      stream.Fill<false, trace::RecordOrder::kTime>(through, wanted, taker);
      if (out.size() < ExitSink::kBlock || dumper.done()) return true;
      XENOSCOPE_ASSIGN_OR_RETURN(const bool wants_more, sink(out.text()));
      if (!wants_more) return false;
      out.Clear();
    }
  };
  if (options.to > Tsc{0}) {
    XENOSCOPE_ASSIGN_OR_RETURN(const bool wants_more, read(Tsc{options.to.value - 1}));
    if (!wants_more) return dumper.Finish();
  }
  dumper.AwaitOpenExits();
  XENOSCOPE_ASSIGN_OR_RETURN(const bool wants_more, read(trace::OrderedStream::kEnd));
  if (!wants_more) return dumper.Finish();
  const ExitDumpResult result = dumper.Finish();
  if (!out.text().empty()) XENOSCOPE_RETURN_IF_ERROR(sink(out.text()).status());
  return result;
}

}  // namespace xenoscope::report
