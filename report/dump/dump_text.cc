// Writes a dump's lines for people. They look like the lines of xenalyze -a:
//
//   ]  0.000690475 x-| d2v0 vmexit exit_reason VMEXIT_CPUID rip 0x401914
//
// The first column has ] for the records of an HVM guest's exit, and ! for items that are not known
// records (lost or damaged records, unknown events). The next columns are: the seconds since the
// first record; a mark for each pCPU; the vCPU that ran on the record's pCPU; the event; its
// fields. The marks are: 'x' this record's pCPU; '|' runs a vCPU; '-' is idle; '.' is not known
// yet; 'l' loses records now.
#include <fmt/compile.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/ids.h"
#include "report/dump/dump_line.h"
#include "report/dump/line_buffer.h"
#include "trace/events.h"
#include "trace/fields.h"
#include "trace/guest_mark.h"
#include "trace/layout.h"
#include "trace/names.h"
#include "trace/record.h"

namespace xenoscope::report {
namespace {

using trace::FieldType;
using trace::ItemKind;
using trace::Record;
using trace::Runstate;

// A text of at most N characters. A copy of kUsual characters takes two instructions, and most
// texts are not longer.
template <size_t N>
struct Text {
  static constexpr size_t kUsual = 32;

  Text() = default;
  explicit Text(std::string_view from) : length(static_cast<uint8_t>(std::min(from.size(), N))) {
    std::copy_n(from.data(), length, text.data());
  }

  // Copies the text to `at`. Returns the end of the copy. The pointer is a variable of its own: the
  // compiler then need not assume that each character changes other data.
  char* PutTo(char* at) const {
    if (N <= kUsual || length > kUsual) {
      std::memcpy(at, text.data(), N);
    } else {
      std::memcpy(at, text.data(), kUsual);
    }
    return at + length;
  }

  std::array<char, N> text{};
  uint8_t length = 0;
};
using Label = Text<32>;

void Put(const Label& label, LineBuffer& out) { out.PutFixed(label.text, label.length); }

// A step of a plan, which prints one field: its place and the label before it.
struct Step {
  Label label;
  FieldType type = FieldType::kPad;
  uint8_t width = 0;  // bits
  uint32_t at = 0;    // the field's first bit in the payload
};

// A plan that prints all records of one event, size and set of variant bits.
struct Plan {
  Label event;
  std::array<Step, trace::Variant::kMaxFields> steps;
  uint8_t step_count = 0;
};

// A record and its text.
struct alignas(64) Recent {
  std::array<uint64_t, 4> key{};  // the record's key; no record has a key of zeros only
  Text<95> line;                  // the text from the event to the end of the line
};
static_assert(sizeof(Recent) == 128);
constexpr unsigned kRecentBits = 9;

// The most pCPUs that have marks.
constexpr size_t kMaxMarks = 64;

// Whether the field is clear without its name: a vCPU, a change of runstate.
bool SpeaksForItself(const trace::FieldSpec& spec) {
  return spec.name == "vcpu" || spec.type == FieldType::kRunstates;
}

class TextWriter final : public LineWriter {
 public:
  TextWriter(const DumpOptions& options, const std::vector<PcpuId>& pcpus)
      : raw_(options.raw),
        dialect_(options.dialect),
        clock_(options.clock, options.zero),
        plan_index_(trace::kEventCount * kPlansPerEvent),
        pcpus_(pcpus),
        mark_count_(pcpus.size() > 1 && pcpus.size() <= kMaxMarks ? pcpus.size() : 0),
        pcpu_labels_(pcpus.size()) {
    marks_.fill('.');
    for (uint32_t change = 0; change < changes_.size(); ++change) {
      changes_[change] = Label(fmt::format(" {}->{}", ToString(static_cast<Runstate>(change >> 2)),
                                           ToString(static_cast<Runstate>(change & 3))));
    }
    for (size_t i = 0; i < pcpus.size(); ++i) SetRunningVcpu(i, kUnknownVcpu);
    seconds_text_ = SecondsText();
    SetTime(last_tsc_);
  }

  void SetRunningVcpu(size_t pcpu_index, PackedVcpu running_vcpu) override {
    std::array<char, 2 * sizeof(Label)> text;
    char* at = PutPcpuName(pcpu_index, text.data());
    if (IsVcpu(running_vcpu)) {
      const VcpuRef ref = UnpackRunningVcpu(running_vcpu);
      at = fmt::format_to(at, FMT_COMPILE(" d{}v{} "), ref.domain.value, ref.vcpu.value);
      Mark(pcpu_index, IsIdle(ref) ? '-' : '|');
    } else {
      at = fmt::format_to(at, FMT_COMPILE(" d?v? "));
      Mark(pcpu_index, running_vcpu == kRecordsLost ? 'l' : '.');
    }
    pcpu_labels_[pcpu_index] = Label({text.data(), at});
  }

  void Write(const DumpLine& line, LineBuffer& out) override {
    out.Reserve(kMaxLineBytes);
    const trace::Item& item = *line.item;
    const Record& record = item.record;
    if (item.kind != ItemKind::kRecord) [[unlikely]] {
      out.SetEnd(PutBegin('!', line, out.end()));
      PutSpecial(item, out);
      return out.Put('\n');
    }
    const uint32_t subclass = record.id >> 12;
    const bool of_exit = subclass == 0x81 || subclass == 0x82;
    char* const at = PutBegin(of_exit ? ']' : ' ', line, out.end());
    const std::array<uint64_t, 4> key = KeyOf(record);
    Recent& recent = recent_[SlotOf(key)];
    if (Same(recent.key, key)) [[likely]] {
      out.SetEnd(recent.line.PutTo(at));
    } else {
      out.SetEnd(at);
      PutRecord(record, out);
      const std::string_view text(at, static_cast<size_t>(out.end() - at));
      if (text.size() <= recent.line.text.size()) recent = {key, Text<95>(text)};
    }
    if (line.exit_cycles != kNoExit) PutExitCycles(line.exit_cycles, out);
  }

 private:
  static constexpr size_t kPlansPerEvent = 64;  // 8 sizes, 8 sets of variant bits

  void Mark(size_t pcpu_index, char mark) {
    if (pcpu_index < mark_count_) marks_[pcpu_index] = mark;
  }

  // Puts the cycles at the end of the line that has just been written. They are not among the texts
  // that are kept for records of equal words.
  static void PutExitCycles(Cycles cycles, LineBuffer& out) {
    out.SetEnd(out.end() - 1);
    out.Put(" cycles ");
    out.PutDecimal(cycles);
    out.Put('\n');
  }

  // Puts all text before the event. Returns the end of it.
  char* PutBegin(char first, const DumpLine& line, char* at) {
    *at++ = first;
    const Tsc tsc = line.item->record.tsc;
    if (tsc != last_tsc_) {
      last_tsc_ = tsc;
      SetTime(tsc);
    }
    at = seconds_text_.PutTo(at);
    at = nanoseconds_.CopyTo(at);
    *at++ = ' ';
    if (mark_count_ != 0) at = PutMarks(line.pcpu_index, at);
    return pcpu_labels_[line.pcpu_index].PutTo(at);
  }

  // Puts the marks of all pCPUs. Returns the end of them.
  char* PutMarks(size_t pcpu_index, char* at) const {
    constexpr size_t kFewMarks = 16;
    std::memcpy(at, marks_.data(), kFewMarks);
    if (mark_count_ > kFewMarks) {
      std::memcpy(at + kFewMarks, marks_.data() + kFewMarks, kMaxMarks - kFewMarks);
    }
    at[pcpu_index] = 'x';
    return at + mark_count_;
  }

  // Puts what stands for the pCPU where there are no marks of all. Returns the end of it.
  char* PutPcpuName(size_t pcpu_index, char* at) const {
    if (mark_count_ != 0) return at;
    if (pcpus_.size() == 1) return fmt::format_to(at, FMT_COMPILE("x"));
    return fmt::format_to(at, FMT_COMPILE("p{}"), pcpus_[pcpu_index].value);
  }

  // Sets the texts of the time. Seconds are at least as wide as those of lines below 1000 s. Most
  // lines are in the same second as the line before.
  void SetTime(Tsc tsc) {
    const LineClock::Time time = clock_.At(tsc);
    nanoseconds_ = NineDigits(time.nanoseconds);
    if (time.seconds == seconds_ && time.negative == negative_) [[likely]] {
      return;
    }
    seconds_ = time.seconds;
    negative_ = time.negative;
    seconds_text_ = SecondsText();
  }

  Label SecondsText() const {
    return Label(negative_ ? fmt::format("-{}.", seconds_) : fmt::format("{:3}.", seconds_));
  }

  // Returns all that a record's text depends on.
  static std::array<uint64_t, 4> KeyOf(const Record& record) {
    const trace::Payload& payload = record.payload;
    const uint32_t head = trace::FirstWord::Pack(record.id, payload.count(), false).value;
    return {payload.Word64(0), payload.Word64(2), payload.Word64(4),
            payload.Word(6) | uint64_t{head} << 32};
  }

  // Compares word by word: the words are still in registers, and a comparison of bytes would wait
  // for memory.
  static bool Same(const std::array<uint64_t, 4>& a, const std::array<uint64_t, 4>& b) {
    return ((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (a[3] ^ b[3])) == 0;
  }

  static size_t SlotOf(const std::array<uint64_t, 4>& key) {
    const uint64_t ends = MultiplyHash(key[0] ^ key[3]);
    return MultiplyHash(ends ^ key[1] ^ key[2] << 1) >> (64 - kRecentBits);
  }

  // Puts the text from the event to the end of the line.
  void PutRecord(const Record& record, LineBuffer& out) {
    if (raw_) {
      out.Put(trace::Info(record.event).name);
      PutRaw(record, out);
    } else if (const auto mark = trace::DecodeGuestMark(record)) {
      PutGuestMark(*mark, out);
    } else {
      PutFields(record, out);
    }
    out.Put('\n');
  }

  static void PutGuestMark(const trace::GuestMark& mark, LineBuffer& out) {
    out.Put("guest mark ");
    out.PutDecimal(mark.number);
    out.Put(' ');
    out.Put(ToString(mark.kind));
    out.Put(mark.part > 0 ? " +\"" : " \"");
    out.PutPrintable(mark.text);
    out.Put("\" tsc ");
    out.PutHexPrefixed(mark.guest_tsc);
  }

  // Not inlined: most lines are in recent_, and Write is faster without the code for the others.
  [[gnu::noinline]] void PutFields(const Record& record, LineBuffer& out) {
    const Plan& plan = PlanOf(record);
    Put(plan.event, out);
    uint32_t op = 0;  // the hypercall
    for (uint8_t i = 0; i < plan.step_count; ++i) {
      Put(plan.steps[i].label, out);
      PutField(plan.steps[i], record, op, out);
    }
  }

  // Puts the value of a field. A field with the number of the hypercall sets `op`, which the field
  // with the arguments needs.
  void PutField(const Step& step, const Record& record, uint32_t& op, LineBuffer& out) {
    const trace::Payload& payload = record.payload;
    const auto bits = [&] { return trace::fields_internal::Bits(payload, step.at, step.width); };
    const auto number = [&] { return trace::fields_internal::SignExtended(bits(), step.width); };
    switch (step.type) {
      case FieldType::kVcpuDomain:
        return PutVcpu(trace::UnpackVcpu(payload.Word(step.at / 32)), out);
      case FieldType::kDomainVcpu:
        return PutVcpu(trace::UnpackDomainFirst(payload.Word(step.at / 32)), out);
      case FieldType::kDomainVcpu2:
        return PutVcpu(payload.Word(step.at / 32), payload.Word(step.at / 32 + 1), out);
      case FieldType::kHex:
      case FieldType::kLong:
      case FieldType::kPte:
      case FieldType::kGl1e:
      case FieldType::kGva:
        return out.PutHexPrefixed(bits());
      case FieldType::kRunstates:
        return Put(changes_[(record.id >> 8 & 3) << 2 | (record.id >> 4 & 3)], out);
      case FieldType::kReason:
        return PutReason(record, static_cast<uint32_t>(bits()), out);
      case FieldType::kHypercall:
        op = static_cast<uint32_t>(bits());
        return PutEnumerator(step.type, op, out);
      case FieldType::kTags:
        return PutArguments(record, op, static_cast<uint32_t>(bits()), out);
      case FieldType::kRest:
        return PutWords(payload, step.at / 32, out);
      case FieldType::kSigned:
        return out.PutSigned(number());
      case FieldType::kOptional:
      case FieldType::kBudget:
        return PutNumberOrName(step.type, number(), out);
      case FieldType::kTrap:
      case FieldType::kMsr:
      case FieldType::kShutdown:
      case FieldType::kIntrSource:
      case FieldType::kP2mType:
        return PutEnumerator(step.type, bits(), out);
      case FieldType::kShadowFlags:
        return PutFlags(static_cast<uint32_t>(bits()), out);
      case FieldType::kGuestEvent:
        return out.PutHexPrefixed(record.id & 0xfff);
      case FieldType::kNested:
        return;  // the label is enough
      default:
        return out.PutDecimal(bits());
    }
  }

  // Puts the number and its name: "14 (page_fault)".
  static void PutEnumerator(FieldType type, uint64_t number, LineBuffer& out) {
    if (type == FieldType::kMsr || type == FieldType::kHypercall) {
      out.PutHexPrefixed(number);
    } else {
      out.PutDecimal(number);
    }
    PutName(trace::ValueName({.name = {}, .type = type, .value = number}), out);
  }

  // Puts the name, such as "none", or the number if it has no name.
  static void PutNumberOrName(FieldType type, int64_t number, LineBuffer& out) {
    const std::string_view name =
        trace::ValueName({.name = {}, .type = type, .value = static_cast<uint64_t>(number)});
    if (name.empty()) {
      out.PutSigned(number);
    } else {
      out.Put(name);
    }
  }

  void PutReason(const Record& record, uint32_t reason, LineBuffer& out) {
    const trace::Vendor vendor = trace::fields_internal::VendorOf(record, dialect_);
    const std::string_view name = trace::ExitReasonName(vendor, reason);
    if (name.empty()) {
      out.PutHexPrefixed(reason);
      return;
    }
    out.Put(name);
    if (vendor == trace::Vendor::kVmx && trace::VmxEntryFailed(reason)) out.Put(" entry_failed");
  }

  static void PutName(std::string_view name, LineBuffer& out) {
    if (name.empty()) return;
    out.Put(" (");
    out.Put(name);
    out.Put(')');
  }

  // Puts "0x30 (l2_propagate set_changed)". Bits without a name are in the number only.
  static void PutFlags(uint32_t flags, LineBuffer& out) {
    out.PutHexPrefixed(flags);
    bool first = true;
    for (uint32_t bit = 0; bit < 32; ++bit) {
      const std::string_view name = trace::ShadowFlagName(bit);
      if ((flags >> bit & 1) == 0 || name.empty()) continue;
      out.Put(first ? " (" : " ");
      out.Put(name);
      first = false;
    }
    if (!first) out.Put(')');
  }

  static void PutVcpu(VcpuRef ref, LineBuffer& out) {
    PutVcpu(ref.domain.value, ref.vcpu.value, out);
  }
  static void PutVcpu(uint32_t domain, uint32_t vcpu, LineBuffer& out) {
    out.Put('d');
    out.PutDecimal(domain);
    out.Put('v');
    out.PutDecimal(vcpu);
  }

  static void PutArguments(const Record& record, uint32_t op, uint32_t tags, LineBuffer& out) {
    const uint32_t end = trace::fields_internal::VisitArguments(
        record.payload, 1, op, tags, [&out](const trace::Field& field) {
          out.Put(' ');
          out.Put(field.name);
          out.Put(' ');
          out.PutHexPrefixed(field.value);
          PutName(trace::ValueName(field), out);
        });
    if (end < record.payload.count()) PutWords(record.payload, end, out);
  }

  // Puts " [ 1 2f ]", as xenalyze does.
  static void PutWords(const trace::Payload& payload, uint32_t word, LineBuffer& out) {
    out.Put(" [");
    for (; word < payload.count(); ++word) {
      out.Put(' ');
      out.PutHex(payload.Word(word));
    }
    out.Put(" ]");
  }

  static void PutRaw(const Record& record, LineBuffer& out) {
    out.Put(' ');
    out.PutHexPrefixed(record.id);
    PutWords(record.payload, 0, out);
  }

  void PutSpecial(const trace::Item& item, LineBuffer& out) {
    switch (item.kind) {
      case ItemKind::kUnknownEvent:
        out.Put("unknown");
        PutRaw(item.record, out);
        break;
      case ItemKind::kMalformed:
        out.Put("malformed ");
        out.Put(trace::Info(item.record.event).name);
        PutRaw(item.record, out);
        break;
      case ItemKind::kWrap:
        out.Put("wrap_buffer ");
        out.PutDecimal(item.record.SizeBytes());
        out.Put(" bytes");
        break;
      case ItemKind::kLossBegin:
        out.Put("loss_begins ");
        out.PutDecimal(item.lost);
        out.Put(" records");
        break;
      case ItemKind::kLost:
        out.Put("lost_records ");
        out.PutDecimal(item.lost);
        out.Put(" since ");
        PutSeconds(clock_.At(item.first_lost), out);
        break;
      case ItemKind::kDamaged:
        out.Put("damaged ");
        out.Put(trace::ToString(item.damage.kind));
        out.Put(": ");
        out.PutDecimal(item.damage.bytes);
        out.Put(" bytes at byte ");
        out.PutDecimal(item.damage.offset);
        break;
      case ItemKind::kPcpuBegin:
        out.Put("pcpu_begins");
        break;
      case ItemKind::kPcpuEnd:
        out.Put("pcpu_ends");
        break;
      case ItemKind::kRecord:
        break;
    }
  }

  const Plan& PlanOf(const Record& record) {
    const size_t key = static_cast<size_t>(record.event) * kPlansPerEvent +
                       record.payload.count() * 8 + (record.id >> 8 & 7);
    const Plan*& plan = plan_index_[key];
    if (plan == nullptr) [[unlikely]] {
      plan = MakePlan(record);
    }
    return *plan;
  }

  const Plan* MakePlan(const Record& record) {
    Plan& plan = plans_.emplace_back();
    plan.event = Label(trace::Info(record.event).name);
    const trace::Variant* variant = trace::FindVariant(record, dialect_);
    if (variant == nullptr) {
      plan.steps[plan.step_count++] = {.label = Label(""), .type = FieldType::kRest};
      return &plan;
    }
    uint32_t at = 0;
    bool after_tags = false;
    for (uint8_t i = 0; i < variant->field_count; ++i) {
      const trace::FieldSpec& spec = variant->fields[i];
      const uint32_t width = trace::fields_internal::Width(spec, record.id);
      const bool in_tags = after_tags && spec.type == FieldType::kRest;  // printed with the tags
      const bool absent = spec.type == FieldType::kNested && !trace::IsNested(record.id);
      if (spec.type != FieldType::kPad && !in_tags && !absent) {
        plan.steps[plan.step_count++] = {.label = LabelOf(spec),
                                         .type = spec.type,
                                         .width = static_cast<uint8_t>(width),
                                         .at = at};
      }
      after_tags = spec.type == FieldType::kTags;
      at += width;
    }
    return &plan;
  }

  static Label LabelOf(const trace::FieldSpec& spec) {
    switch (spec.type) {
      case FieldType::kRunstates:
      case FieldType::kTags:
        return {};
      case FieldType::kNested:
        return Label(" nested");
      case FieldType::kRest:
        return spec.name == "words" ? Label() : Label(fmt::format(" {}", spec.name));
      default:
        return SpeaksForItself(spec) ? Label(" ") : Label(fmt::format(" {} ", spec.name));
    }
  }

  bool raw_;
  trace::Dialect dialect_;
  LineClock clock_;
  std::deque<Plan> plans_;
  std::vector<const Plan*> plan_index_;
  const std::vector<PcpuId>& pcpus_;
  std::array<char, kMaxMarks> marks_;
  size_t mark_count_;  // the number of marks; 0 when there is one pCPU, or more than kMaxMarks
  // By the index of the pCPU: its name where there are no marks, and the vCPU that runs there, such
  // as "p71 d1v0 ".
  std::vector<Label> pcpu_labels_;
  std::array<Label, 16> changes_;  // the texts of changes, by old << 2 | new
  std::vector<Recent> recent_ = std::vector<Recent>(size_t{1} << kRecentBits);
  Tsc last_tsc_;  // the time of the texts below
  uint32_t seconds_ = 0;
  bool negative_ = false;
  Label seconds_text_;
  NineDigits nanoseconds_{0};
};

}  // namespace

std::unique_ptr<LineWriter> MakeTextWriter(const DumpOptions& options,
                                           const std::vector<PcpuId>& pcpus) {
  return std::make_unique<TextWriter>(options, pcpus);
}

}  // namespace xenoscope::report
