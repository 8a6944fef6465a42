// Fuzzes a record's words, in every dialect: decoding its fields never leaves the record.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/bytes.h"
#include "trace/dialect.h"
#include "trace/fields.h"
#include "trace/trace_file.h"

namespace xenoscope::trace {
namespace {

void DecodeInAllDialects(const Record& record) {
  for (const Vendor vendor : {Vendor::kUnknown, Vendor::kVmx, Vendor::kSvm}) {
    for (const uint32_t minor : {8U, 11U, 17U, 18U, 22U}) {
      Dialect dialect;
      dialect.vendor = vendor;
      dialect.SetVersion(MakeVersion(4, minor), DialectSource::kGiven);
      const FieldList fields = DecodeFields(record, dialect);
      if (fields.count > FieldList::kCapacity) std::abort();
      for (const Field& field : fields) (void)ValueName(field);
    }
  }
}

}  // namespace
}  // namespace xenoscope::trace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace xenoscope::trace;
  const xenoscope::Bytes bytes = std::as_bytes(std::span(data, size));
  const auto file = TraceFile::FromBytes(bytes, "fuzz");
  if (!file.ok()) return 0;
  DialectEvidence dialect;
  ClockEvidence clock;
  OrderedStream stream = file->Stream();
  while (const Item* item = stream.Next()) {
    if (item->kind > ItemKind::kMalformed) continue;
    DecodeInAllDialects(item->record);
    if (item->kind != ItemKind::kRecord) continue;
    dialect.Observe(item->record);
    clock.Observe(item->record);
  }
  (void)dialect.Conclude();
  (void)clock.Conclude();
  return 0;
}
