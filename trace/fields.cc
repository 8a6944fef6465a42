#include "trace/fields.h"

#include <cstdint>
#include <limits>
#include <string_view>

namespace xenoscope::trace {

std::string_view ValueName(const Field& field) {
  const auto number = static_cast<uint32_t>(field.value);
  switch (field.type) {
    case FieldType::kReason:
      return ExitReasonName(field.vendor, number);
    case FieldType::kHypercall:
      return HypercallName(number);
    case FieldType::kArgument:
      return HypercallArgumentName(field.op, field.argument, field.value);
    case FieldType::kTrap:
      return TrapName(number);
    case FieldType::kMsr:
      return MsrName(number);
    case FieldType::kShutdown:
      return ShutdownName(number);
    case FieldType::kIntrSource:
      return InterruptSourceName(number);
    case FieldType::kP2mType:
      return P2mTypeName(number);
    case FieldType::kOptional:
      return static_cast<int64_t>(field.value) == -1 ? "none" : std::string_view();
    case FieldType::kBudget:
      // The budget of a vCPU whose time has no limit.
      return static_cast<int64_t>(field.value) == std::numeric_limits<int32_t>::min()
                 ? "none"
                 : std::string_view();
    default:
      return {};
  }
}

uint32_t VariantWords(const Variant& variant, uint32_t id) {
  if (variant.min_words == variant.max_words) return variant.min_words;
  uint32_t bits = 0;
  for (uint8_t i = 0; i < variant.field_count; ++i) {
    bits += fields_internal::Width(variant.fields[i], id);
  }
  return bits / 32;
}

const Variant* FindVariant(const Record& record, const Dialect& dialect) {
  const Layout& layout = LayoutOf(record.event);
  const uint32_t words = record.payload.count();
  const Variant* excluded = nullptr;
  for (uint8_t i = 0; i < layout.variant_count; ++i) {
    const Variant& variant = layout.variants[i];
    const uint32_t takes = VariantWords(variant, record.id);
    if (words != takes && (!variant.has_rest || words < takes)) continue;
    if (variant.from_version < dialect.before_version &&
        dialect.from_version < variant.before_version) {
      return &variant;
    }
    if (excluded == nullptr) excluded = &variant;
  }
  return excluded;
}

const Field* FieldList::Find(std::string_view name) const {
  for (const Field& field : *this) {
    if (field.name == name) return &field;
  }
  return nullptr;
}

FieldList DecodeFields(const Record& record, const Dialect& dialect) {
  FieldList list;
  VisitFields(record, dialect, [&list](const Field& field) {
    if (list.count < FieldList::kCapacity) list.fields[list.count++] = field;
  });
  return list;
}

}  // namespace xenoscope::trace
