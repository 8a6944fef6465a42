// Fuzzes a slice as a guest's agent gets it: what passes the checks is the same after it was
// written and read again, and makes a profile or an error. There is no crash. Numbers behind the
// compression are those of clickhouse_fuzz, too.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "base/bytes.h"
#include "store/slice_bytes.h"
#include "tests/fuzz/merge_slice.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace store = xenoscope::store;
  const auto slice = store::FromBytes(std::as_bytes(std::span(data, size)));
  if (!slice.ok()) return 0;
  const auto bytes = store::ToBytes(*slice);
  if (!bytes.ok()) return 0;  // names that are escaped are longer
  const auto again = store::FromBytes(*bytes);
  if (!again.ok() || *store::ToBytes(*again) != *bytes) std::abort();
  Merge(slice->slice, slice->dictionary);
  return 0;
}
