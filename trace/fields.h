// Decodes the payload of a record into named, typed values, in the dialect of the Xen that wrote
// it. The layouts are the rows of trace/event_rows.inc; nothing here knows an event by name.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/ids.h"
#include "trace/dialect.h"
#include "trace/events.h"
#include "trace/layout.h"
#include "trace/names.h"
#include "trace/record.h"

namespace xenoscope::trace {

// One value. `value` holds:
//   kUnsigned, kHex, kLong, kPte, kGl1e, kGva, kDomain, kHypercall, kTrap, kCr, kMsr, kShutdown,
//   kIntrSource, kP2mType, kShadowFlags, kNested, kGuestEvent    the number
//   kSigned, kOptional, kBudget    the number, sign-extended to 64 bits
//   kReason                 the number of an exit reason of `vendor`
//   kVcpuDomain, kDomainVcpu, kDomainVcpu2    PackVcpu
//   kRunstates              old << 8 | new
//   kArgument               an argument of the hypercall `op`, `bits` wide
//   kRest                   one word
struct Field {
  std::string_view name;
  FieldType type = FieldType::kPad;
  uint8_t bits = 0;
  uint8_t argument = 0;  // kArgument: the argument's number
  Vendor vendor = Vendor::kUnknown;
  uint32_t op = 0;
  uint64_t value = 0;
};

[[nodiscard]] constexpr uint64_t PackVcpu(VcpuRef ref) {
  return uint64_t{ref.domain.value} << 32 | ref.vcpu.value;
}
[[nodiscard]] constexpr VcpuRef FieldVcpu(const Field& field) {
  return {DomainId{static_cast<uint16_t>(field.value >> 32)},
          VcpuId{static_cast<uint32_t>(field.value)}};
}

// The types whose numbers may be below 0.
[[nodiscard]] constexpr bool IsSigned(FieldType type) {
  return type == FieldType::kSigned || type == FieldType::kOptional || type == FieldType::kBudget;
}

// Returns the name of the field's number ("VMEXIT_CPUID", "mmu_update", "EFER", "none"), or an
// empty one. Flags have a name for each bit: ShadowFlagName.
[[nodiscard]] std::string_view ValueName(const Field& field);

// Returns the variant of the event's layout in which the record is written: the first of its size
// that the dialect does not exclude, else the first of its size, else null (no version writes this
// size).
const Variant* FindVariant(const Record& record, const Dialect& dialect);

// Returns the words that the variant takes of a record with this event number, without those of
// kRest and of arguments.
[[nodiscard]] uint32_t VariantWords(const Variant& variant, uint32_t id);

// Calls visit(const Field&) for every field of the record but padding, in order. Words of a record
// whose size no version writes, and those behind the last field, come as kRest.
template <typename Visit>
void VisitFields(const Record& record, const Dialect& dialect, Visit&& visit);

struct FieldList {
  static constexpr size_t kCapacity = 12;
  std::array<Field, kCapacity> fields;
  size_t count = 0;

  const Field* begin() const { return fields.data(); }
  const Field* end() const { return fields.data() + count; }
  // Returns the field of this name, or null.
  const Field* Find(std::string_view name) const;
};

// Returns all fields of the record. Allocates nothing.
[[nodiscard]] FieldList DecodeFields(const Record& record, const Dialect& dialect);

namespace fields_internal {

inline constexpr std::string_view kArgumentNames[] = {"a0", "a1", "a2", "a3", "a4", "a5"};

// Returns the vendor whose exit reasons the record has.
inline Vendor VendorOf(const Record& record, const Dialect& dialect) {
  return record.event == Event::kHvmSvmExit ? Vendor::kSvm : dialect.vendor;
}

// Returns the width in bits of a field in a record with this event number.
[[nodiscard]] constexpr uint32_t Width(const FieldSpec& spec, uint32_t id) {
  switch (spec.type) {
    case FieldType::kLong:
    case FieldType::kPte:
      return Is64(id) ? 64 : 32;
    case FieldType::kGl1e:
      return ShadowLevels(id) == 2 ? 32 : 64;
    case FieldType::kGva:
      return ShadowLevels(id) >= 4 ? 64 : 32;
    default:
      return spec.bits;
  }
}

// Returns `width` bits from bit `at` on. Only fields that begin with a word reach beyond it.
[[nodiscard]] inline uint64_t Bits(const Payload& payload, uint32_t at, uint32_t width) {
  const uint32_t word = at / 32;
  if (width == 64) return payload.Word64(word);
  const uint64_t value = payload.Word(word) >> (at % 32);
  return width == 32 ? value : value & ((uint64_t{1} << width) - 1);
}

// Returns the number whose two's complement the lowest `width` bits are.
[[nodiscard]] constexpr int64_t SignExtended(uint64_t bits, uint32_t width) {
  const uint64_t sign = uint64_t{1} << (width - 1);
  return static_cast<int64_t>((bits ^ sign) - sign);
}

template <typename Visit>
void VisitRest(const Payload& payload, uint32_t word, std::string_view name, Visit&& visit) {
  for (; word < payload.count(); ++word) {
    visit(Field{.name = name, .type = FieldType::kRest, .bits = 32, .value = payload.Word(word)});
  }
}

// Visits the arguments from `word` on that `tags` announces (2 bits for each argument: 1 for one
// word, 2 for two). Returns the word behind them.
template <typename Visit>
[[nodiscard]] uint32_t VisitArguments(const Payload& payload, uint32_t word, uint32_t op,
                                      uint32_t tags, Visit&& visit) {
  for (uint8_t argument = 0; argument < 6 && tags >> (2 * argument) != 0; ++argument) {
    const uint32_t words = tags >> (2 * argument) & 3;
    if (words == 0 || words == 3 || word + words > payload.count()) continue;
    visit(Field{.name = kArgumentNames[argument],
                .type = FieldType::kArgument,
                .bits = static_cast<uint8_t>(words * 32),
                .argument = argument,
                .op = op,
                .value = words == 2 ? payload.Word64(word) : payload.Word(word)});
    word += words;
  }
  return word;
}

}  // namespace fields_internal

template <typename Visit>
void VisitFields(const Record& record, const Dialect& dialect, Visit&& visit) {
  using fields_internal::Bits;
  const Payload& payload = record.payload;
  const Variant* variant = FindVariant(record, dialect);
  if (variant == nullptr) {
    fields_internal::VisitRest(payload, 0, "words", visit);
    return;
  }
  uint32_t at = 0;  // bits
  uint32_t op = 0;
  uint32_t tags = 0;
  bool has_tags = false;
  for (uint8_t i = 0; i < variant->field_count; ++i) {
    const FieldSpec& spec = variant->fields[i];
    const uint32_t width = fields_internal::Width(spec, record.id);
    Field field{.name = spec.name, .type = spec.type, .bits = static_cast<uint8_t>(width)};
    switch (spec.type) {
      case FieldType::kPad:
        at += width;
        continue;
      case FieldType::kRunstates:
        field.value = record.id >> 8 & 3;
        field.value = field.value << 8 | (record.id >> 4 & 3);
        break;
      case FieldType::kNested:
        if (!IsNested(record.id)) continue;
        field.value = 1;
        break;
      case FieldType::kGuestEvent:
        field.value = record.id & 0xfff;
        break;
      case FieldType::kTags:
        tags = static_cast<uint32_t>(Bits(payload, at, width));
        has_tags = true;
        at += width;
        continue;
      case FieldType::kRest: {
        uint32_t word = at / 32;
        if (has_tags) word = fields_internal::VisitArguments(payload, word, op, tags, visit);
        fields_internal::VisitRest(payload, word, spec.name, visit);
        return;
      }
      case FieldType::kVcpuDomain:
        field.value = PackVcpu(UnpackVcpu(payload.Word(at / 32)));
        break;
      case FieldType::kDomainVcpu:
        field.value = PackVcpu(UnpackDomainFirst(payload.Word(at / 32)));
        break;
      case FieldType::kDomainVcpu2: {
        const auto domain = static_cast<uint16_t>(payload.Word(at / 32));
        field.value = PackVcpu({DomainId{domain}, VcpuId{payload.Word(at / 32 + 1)}});
        break;
      }
      case FieldType::kSigned:
      case FieldType::kOptional:
      case FieldType::kBudget:
        field.value =
            static_cast<uint64_t>(fields_internal::SignExtended(Bits(payload, at, width), width));
        break;
      case FieldType::kReason:
        field.vendor = fields_internal::VendorOf(record, dialect);
        field.value = Bits(payload, at, width);
        break;
      default:
        field.value = Bits(payload, at, width);
        if (spec.type == FieldType::kHypercall) op = static_cast<uint32_t>(field.value);
        break;
    }
    at += width;
    visit(static_cast<const Field&>(field));
  }
}

}  // namespace xenoscope::trace
