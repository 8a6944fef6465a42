// Records made of words, and what their fields read as.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "trace/fields.h"

namespace xenoscope::trace {

using Words = std::vector<uint32_t>;

inline Record MakeRecord(uint32_t id, const Words& words) {
  Record record;
  record.id = id;
  record.event = Classify(id);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): words as bytes
  record.payload = Payload(reinterpret_cast<const std::byte*>(words.data()),
                           static_cast<uint32_t>(words.size()));
  return record;
}

inline Dialect Version(uint32_t minor, Vendor vendor = Vendor::kUnknown) {
  Dialect dialect;
  dialect.SetVersion(MakeVersion(4, minor), DialectSource::kGiven);
  dialect.vendor = vendor;
  return dialect;
}

// "name=value ..." with vCPUs as dXvY, signed numbers signed, named ones followed by (name).
inline std::string Text(uint32_t id, const Words& words, const Dialect& dialect = {}) {
  std::string text;
  const Record record = MakeRecord(id, words);
  for (const Field& field : DecodeFields(record, dialect)) {
    if (!text.empty()) text += ' ';
    switch (field.type) {
      case FieldType::kVcpuDomain:
      case FieldType::kDomainVcpu:
      case FieldType::kDomainVcpu2: {
        const VcpuRef ref = FieldVcpu(field);
        text += fmt::format("{}=d{}v{}", field.name, ref.domain.value, ref.vcpu.value);
        break;
      }
      case FieldType::kSigned:
      case FieldType::kOptional:
      case FieldType::kBudget:
        text += fmt::format("{}={}", field.name, static_cast<int64_t>(field.value));
        break;
      case FieldType::kHex:
      case FieldType::kLong:
      case FieldType::kPte:
      case FieldType::kGl1e:
      case FieldType::kGva:
      case FieldType::kShadowFlags:
        text += fmt::format("{}={:#x}", field.name, field.value);
        break;
      default:
        text += fmt::format("{}={}", field.name, field.value);
    }
    if (!ValueName(field).empty()) text += fmt::format("({})", ValueName(field));
  }
  return text;
}

}  // namespace xenoscope::trace
