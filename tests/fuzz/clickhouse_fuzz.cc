// Fuzzes the answers of a ClickHouse server, which may be anyone, and the names and sums of the
// slices in them, without the compression of the sums: what can be read is checked, and what passes
// the check makes a profile or an error. There is no crash.
//
// An input is an answer whose sums are not compressed: that is done here.
#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "store/clickhouse/stored_slices.h"
#include "store/named_sums.h"
#include "store/store.h"
#include "tests/fuzz/merge_slice.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace store = xenoscope::store;
  const xenoscope::Bytes input = std::as_bytes(std::span(data, size));
  const auto slices = store::StoredSlices::Parse(std::string(xenoscope::AsText(input)));
  if (!slices) return 0;
  store::Dictionary dictionary;
  store::NamedReader reader(dictionary);
  store::Slice slice;
  for (const store::StoredSlice& stored : slices->all()) {
    slice.head = stored.head;
    slice.count = stored.count;
    slice.gaps_ns = stored.gaps_ns;
    std::string packed(ZSTD_compressBound(stored.packed.size()), '\0');
    packed.resize(
        ZSTD_compress(packed.data(), packed.size(), stored.packed.data(), stored.packed.size(), 1));
    if (!reader.Read(stored.names, xenoscope::AsBytes(packed), {}, slice.sums).ok()) continue;
    if (store::CheckSlice(slice, dictionary).ok()) Merge(slice, dictionary);
  }
  return 0;
}
