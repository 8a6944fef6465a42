// Writes a dump's lines for programs, as JSON lines and as CSV. docs/dump.md lists the keys.
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/ids.h"
#include "report/dump/dump_line.h"
#include "report/dump/line_buffer.h"
#include "trace/events.h"
#include "trace/fields.h"
#include "trace/guest_mark.h"

namespace xenoscope::report {
namespace {

using trace::Field;
using trace::FieldType;
using trace::ItemKind;

std::string_view KindName(ItemKind kind) {
  switch (kind) {
    case ItemKind::kRecord:
      return "record";
    case ItemKind::kUnknownEvent:
      return "unknown";
    case ItemKind::kMalformed:
      return "malformed";
    case ItemKind::kWrap:
      return "wrap";
    case ItemKind::kLossBegin:
      return "loss_begin";
    case ItemKind::kLost:
      return "lost";
    case ItemKind::kDamaged:
      return "damaged";
    case ItemKind::kPcpuBegin:
      return "pcpu_begin";
    case ItemKind::kPcpuEnd:
      return "pcpu_end";
  }
  return "?";
}

bool HasRecord(ItemKind kind) {
  return kind == ItemKind::kRecord || kind == ItemKind::kUnknownEvent ||
         kind == ItemKind::kMalformed || kind == ItemKind::kWrap;
}

bool IsHex(FieldType type) {
  switch (type) {
    case FieldType::kHex:
    case FieldType::kLong:
    case FieldType::kPte:
    case FieldType::kGl1e:
    case FieldType::kGva:
    case FieldType::kArgument:
    case FieldType::kShadowFlags:
    case FieldType::kRest:
      return true;
    default:
      return false;
  }
}

bool IsVcpuField(FieldType type) {
  return type == FieldType::kVcpuDomain || type == FieldType::kDomainVcpu ||
         type == FieldType::kDomainVcpu2;
}

// The base of both writers: the time, and a walk over the fields.
class StructuredWriter : public LineWriter {
 public:
  explicit StructuredWriter(const DumpOptions& options)
      : raw_(options.raw), dialect_(options.dialect), clock_(options.clock, options.zero) {}

 protected:
  LineClock::Time TimeOf(Tsc tsc) { return clock_.At(tsc); }

  // Visits all fields of the item. It visits the words instead when the fields are not known or
  // when --raw asked for them.
  template <typename Visit>
  void VisitAll(const trace::Item& item, Visit&& visit) const {
    if (item.kind == ItemKind::kRecord && !raw_) {
      trace::VisitFields(item.record, dialect_, visit);
    } else if (HasRecord(item.kind)) {
      trace::fields_internal::VisitRest(item.record.payload, 0, "words", visit);
    }
  }

 private:
  bool raw_;
  trace::Dialect dialect_;
  LineClock clock_;
};

class JsonWriter final : public StructuredWriter {
 public:
  using StructuredWriter::StructuredWriter;

  void Write(const DumpLine& line, LineBuffer& out) override {
    const trace::Item& item = *line.item;
    const trace::Record& record = item.record;
    out.Reserve(kMaxLineBytes);
    out.Put(R"({"tsc":)");
    out.PutDecimal(record.tsc.value);
    out.Put(R"(,"seconds":)");
    PutSeconds(TimeOf(record.tsc), out);
    out.Put(R"(,"pcpu":)");
    out.PutDecimal(record.pcpu.value);
    if (IsVcpu(line.running_vcpu)) {
      const VcpuRef ref = UnpackRunningVcpu(line.running_vcpu);
      out.Put(R"(,"domid":)");
      out.PutDecimal(ref.domain.value);
      out.Put(R"(,"vcpu":)");
      out.PutDecimal(ref.vcpu.value);
    } else {
      out.Put(R"(,"domid":null,"vcpu":null)");
    }
    out.Put(R"(,"kind":")");
    out.Put(KindName(item.kind));
    out.Put('"');
    if (HasRecord(item.kind)) {
      out.Put(R"(,"event":")");
      out.Put(trace::Info(record.event).name);
      out.Put(R"(","id":"0x)");
      out.PutHex(record.id);
      out.Put(R"(","offset":)");
      out.PutDecimal(record.offset);
      PutFields(line, out);
    } else if (item.kind == ItemKind::kLost || item.kind == ItemKind::kLossBegin) {
      out.Put(R"(,"lost":)");
      out.PutDecimal(item.lost);
      out.Put(R"(,"first_lost_tsc":)");
      out.PutDecimal(item.first_lost.value);
    } else if (item.kind == ItemKind::kDamaged) {
      out.Put(R"(,"damage":")");
      out.Put(trace::ToString(item.damage.kind));
      out.Put(R"(","offset":)");
      out.PutDecimal(item.damage.offset);
      out.Put(R"(,"bytes":)");
      out.PutDecimal(item.damage.bytes);
    }
    out.Put("}\n");
  }

 private:
  void PutFields(const DumpLine& line, LineBuffer& out) const {
    out.Put(R"(,"fields":{)");
    bool first = true;
    bool in_array = false;
    VisitAll(*line.item, [&](const Field& field) {
      if (field.type == FieldType::kRest) {
        // Words with the same name follow one another.
        if (!in_array) PutKey(field.name, {}, first, out);
        out.Put(in_array ? ',' : '[');
        in_array = true;
        PutValue(field, out);
        return;
      }
      PutKey(field.name, {}, first, out);
      PutValue(field, out);
      if (field.type == FieldType::kShadowFlags) PutFlagNames(field, first, out);
      const std::string_view name = trace::ValueName(field);
      if (name.empty()) return;
      PutKey(field.name, "_name", first, out);
      out.Put('"');
      out.Put(name);
      out.Put('"');
    });
    if (in_array) out.Put(']');
    PutGuestMark(line.item->record, first, out);
    if (line.exit_cycles != kNoExit) {
      PutKey("cycles", {}, first, out);
      out.PutDecimal(line.exit_cycles);
    }
    out.Put('}');
  }

  // Puts what the record says if it is one of a guest's mark.
  static void PutGuestMark(const trace::Record& record, bool& first, LineBuffer& out) {
    const auto mark = trace::DecodeGuestMark(record);
    if (!mark) return;
    PutKey("mark", {}, first, out);
    out.PutDecimal(mark->number);
    out.Put(R"(,"mark_kind":")");
    out.Put(ToString(mark->kind));
    out.Put(R"(","mark_part":)");
    out.PutDecimal(mark->part);
    out.Put(R"(,"mark_continues":)");
    out.Put(mark->continues ? "true" : "false");
    out.Put(R"(,"mark_text":")");
    out.PutPrintable(mark->text);
    out.Put('"');
  }

  static void PutFlagNames(const Field& field, bool& first, LineBuffer& out) {
    PutKey(field.name, "_names", first, out);
    out.Put('[');
    bool first_name = true;
    for (uint32_t bit = 0; bit < field.bits; ++bit) {
      const std::string_view name = trace::ShadowFlagName(bit);
      if ((field.value >> bit & 1) == 0 || name.empty()) continue;
      out.Put(first_name ? "\"" : ",\"");
      out.Put(name);
      out.Put('"');
      first_name = false;
    }
    out.Put(']');
  }

  static void PutKey(std::string_view name, std::string_view suffix, bool& first, LineBuffer& out) {
    if (!first) out.Put(',');
    first = false;
    out.Put('"');
    out.Put(name);
    out.Put(suffix);
    out.Put("\":");
  }

  // Puts a value. Addresses and bits of 64 bits are strings, because readers of JSON round large
  // numbers.
  static void PutValue(const Field& field, LineBuffer& out) {
    if (IsHex(field.type)) {
      out.Put('"');
      out.PutHexPrefixed(field.value);
      out.Put('"');
    } else if (IsVcpuField(field.type)) {
      const VcpuRef ref = trace::FieldVcpu(field);
      out.Put(R"({"domid":)");
      out.PutDecimal(ref.domain.value);
      out.Put(R"(,"vcpu":)");
      out.PutDecimal(ref.vcpu.value);
      out.Put('}');
    } else if (field.type == FieldType::kRunstates) {
      out.Put(R"({"old":")");
      out.Put(ToString(static_cast<trace::Runstate>(field.value >> 8)));
      out.Put(R"(","new":")");
      out.Put(ToString(static_cast<trace::Runstate>(field.value & 0xff)));
      out.Put("\"}");
    } else if (trace::IsSigned(field.type)) {
      out.PutSigned(static_cast<int64_t>(field.value));
    } else {
      out.PutDecimal(field.value);
    }
  }
};

class CsvWriter final : public StructuredWriter {
 public:
  using StructuredWriter::StructuredWriter;

  void Begin(LineBuffer& out) const override {
    out.Reserve(kMaxLineBytes);
    out.Put("tsc,seconds,pcpu,domid,vcpu,kind,event,id,offset,fields\n");
  }

  // Writes the fields as "name=value", separated by blanks. No value has a comma, a quote or a line
  // end in it, except that of a damage.
  void Write(const DumpLine& line, LineBuffer& out) override {
    const trace::Item& item = *line.item;
    const trace::Record& record = item.record;
    out.Reserve(kMaxLineBytes);
    out.PutDecimal(record.tsc.value);
    out.Put(',');
    PutSeconds(TimeOf(record.tsc), out);
    out.Put(',');
    out.PutDecimal(record.pcpu.value);
    out.Put(',');
    if (IsVcpu(line.running_vcpu)) {
      const VcpuRef ref = UnpackRunningVcpu(line.running_vcpu);
      out.PutDecimal(ref.domain.value);
      out.Put(',');
      out.PutDecimal(ref.vcpu.value);
    } else {
      out.Put(',');
    }
    out.Put(',');
    out.Put(KindName(item.kind));
    out.Put(',');
    if (HasRecord(item.kind)) {
      out.Put(trace::Info(record.event).name);
      out.Put(',');
      out.PutHexPrefixed(record.id);
    } else {
      out.Put(',');
    }
    out.Put(',');
    out.PutDecimal(item.kind == ItemKind::kDamaged ? item.damage.offset : record.offset);
    out.Put(',');
    PutFields(line, out);
    out.Put('\n');
  }

 private:
  void PutFields(const DumpLine& line, LineBuffer& out) {
    const trace::Item& item = *line.item;
    if (item.kind == ItemKind::kLost || item.kind == ItemKind::kLossBegin) {
      out.Put("lost=");
      out.PutDecimal(item.lost);
      out.Put(" first_lost_tsc=");
      out.PutDecimal(item.first_lost.value);
    } else if (item.kind == ItemKind::kDamaged) {
      out.Put("\"damage=");  // the words have commas
      out.Put(trace::ToString(item.damage.kind));
      out.Put(" bytes=");
      out.PutDecimal(item.damage.bytes);
      out.Put('"');
    }
    bool first = true;
    VisitAll(item, [&](const Field& field) {
      if (!first) out.Put(' ');
      first = false;
      out.Put(field.name);
      out.Put('=');
      if (IsHex(field.type)) {
        out.PutHexPrefixed(field.value);
      } else if (IsVcpuField(field.type)) {
        const VcpuRef ref = trace::FieldVcpu(field);
        out.Put('d');
        out.PutDecimal(ref.domain.value);
        out.Put('v');
        out.PutDecimal(ref.vcpu.value);
      } else if (field.type == FieldType::kRunstates) {
        out.Put(ToString(static_cast<trace::Runstate>(field.value >> 8)));
        out.Put("->");
        out.Put(ToString(static_cast<trace::Runstate>(field.value & 0xff)));
      } else if (const std::string_view name = trace::ValueName(field); !name.empty()) {
        out.Put(name);
      } else if (trace::IsSigned(field.type)) {
        out.PutSigned(static_cast<int64_t>(field.value));
      } else {
        out.PutDecimal(field.value);
      }
    });
    if (line.exit_cycles != kNoExit) {
      out.Put(first ? "cycles=" : " cycles=");
      out.PutDecimal(line.exit_cycles);
    }
  }
};

}  // namespace

void LineWriter::Begin(LineBuffer& /*out*/) const {}
void LineWriter::SetRunningVcpu(size_t /*pcpu_index*/, PackedVcpu /*runner*/) {}

std::unique_ptr<LineWriter> MakeJsonWriter(const DumpOptions& options) {
  return std::make_unique<JsonWriter>(options);
}
std::unique_ptr<LineWriter> MakeCsvWriter(const DumpOptions& options) {
  return std::make_unique<CsvWriter>(options);
}

}  // namespace xenoscope::report
