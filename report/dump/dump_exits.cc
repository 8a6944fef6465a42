#include "report/dump/dump_exits.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "correlate/exit_contents.h"
#include "correlate/timeline.h"
#include "report/dump/dump_line.h"
#include "report/dump/line_buffer.h"
#include "report/exit_names.h"
#include "trace/events.h"
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
      name = {kReason, reason, ExitName(vendor_, /*nested=*/false, reason)};
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

  static void PutSeconds(const LineClock::Time& time, LineBuffer& out) {
    if (time.negative) out.Put('-');
    out.PutDecimal(time.seconds);
    out.Put('.');
    out.PutNineDigits(time.nanoseconds);
  }

  DumpFormat format_;
  ExitNames names_;
  LineClock clock_;
};

// Follows the exits of all vCPUs, and writes each when it is known what its handler recorded: at
// the VMENTRY, at the vCPU's next exit, or when it is cut off.
class ExitDumper final : public correlate::TimelineObserver {
 public:
  ExitDumper(const DumpOptions& options, LineBuffer& out)
      : options_(options), writer_(options), out_(out), timeline_(*this) {
    for (const Event event : correlate::HandlerEvents()) {
      handler_events_[static_cast<size_t>(event)] = true;
    }
    writer_.Begin(out_);
  }

  void Take(const Item& item) {
    result_.last = std::max(result_.last, item.record.tsc);
    if (item.kind == ItemKind::kLost) result_.lost_records += item.lost;
    if (item.kind == ItemKind::kRecord) TakeHandlerRecord(item.record);
    timeline_.Take(item);
    if (item.kind != ItemKind::kRecord || item.record.event != Event::kHvmVmentry) return;
    const VcpuTrack* vcpu = timeline_.Current(item.record.pcpu);
    if (vcpu != nullptr) Write(OpenOf(vcpu->index));
  }

  // Whether no exit that began before `at` can change any more.
  bool IsDoneBefore(Tsc at) const {
    return std::ranges::none_of(timeline_.vcpus(), [at](const auto& vcpu) {
      return vcpu->exit_open && vcpu->exit_tsc < at;
    });
  }

  ExitDumpResult Finish() {
    timeline_.Finish();
    for (OpenExit& open : open_) Write(open);
    result_.without_vcpu = timeline_.faults().exits_without_vcpu;
    result_.contradictions = timeline_.faults().runstate_mismatches;
    return result_;
  }

  [[nodiscard]] bool WantsSegments() const override { return false; }
  [[nodiscard]] bool WantsMarks() const override { return false; }
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
    if (!handler_events_[static_cast<size_t>(record.event)]) return;
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
    if (!IsSelected(open.arc)) return;
    ++result_.exits;
    if (!open.arc.finished) ++result_.unfinished;
    writer_.Write({open.arc, open.contents}, out_);
  }

  bool IsSelected(const ExitArc& arc) const {
    const auto among = [](const auto& wanted, auto one) {
      return wanted.empty() || std::ranges::find(wanted, one) != wanted.end();
    };
    return arc.range.begin >= options_.from && arc.range.begin < options_.to &&
           among(options_.domains, arc.vcpu.domain) && among(options_.vcpus, arc.vcpu.vcpu) &&
           among(options_.pcpus, arc.pcpu);
  }

  const DumpOptions& options_;
  ExitWriter writer_;
  LineBuffer& out_;
  correlate::Timeline timeline_;
  std::array<bool, trace::kEventCount> handler_events_{};
  std::vector<OpenExit> open_;  // by VcpuTrack::index
  ExitDumpResult result_;
};

}  // namespace

absl::StatusOr<ExitDumpResult> DumpExits(const trace::TraceFile& file, const DumpOptions& options,
                                         const DumpSink& sink) {
  constexpr size_t kBlock = size_t{1} << 20;
  LineBuffer out(kBlock + kMaxLineBytes);
  ExitDumper dumper(options, out);
  trace::OrderedStream stream = file.Stream();
  while (const Item* item = stream.Next()) {
    if (item->record.tsc >= options.to && dumper.IsDoneBefore(options.to)) break;
    dumper.Take(*item);
    if (out.text().size() < kBlock) continue;
    const absl::StatusOr<bool> wanted = sink(out.text());
    if (!wanted.ok()) return wanted.status();
    if (!*wanted) return dumper.Finish();
    out.Clear();
  }
  const ExitDumpResult result = dumper.Finish();
  if (out.text().empty()) return result;
  const absl::StatusOr<bool> wanted = sink(out.text());
  if (!wanted.ok()) return wanted.status();
  return result;
}

}  // namespace xenoscope::report
