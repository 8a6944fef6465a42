// Fuzzes a slice as a guest's agent gets it, without its compression: what passes the checks is the
// same after it was written again, and makes a profile or an error. There is no crash.
#include <zstd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "base/bytes.h"
#include "store/slice_bytes.h"
#include "tests/fuzz/merge_slice.h"

namespace {

namespace store = xenoscope::store;

std::string Decompressed(xenoscope::Bytes bytes) {
  std::string plain(ZSTD_getFrameContentSize(bytes.data(), bytes.size()), '\0');
  ZSTD_decompress(plain.data(), plain.size(), bytes.data(), bytes.size());
  return plain;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  (void)store::FromBytes(std::as_bytes(std::span(data, size)));
  std::string packed(ZSTD_compressBound(size), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), data, size, 1));
  const auto slice = store::FromBytes(xenoscope::AsBytes(packed));
  if (!slice.ok()) return 0;
  const auto again = store::ToBytes(*slice);
  if (!again.ok()) std::abort();
  const std::string plain = Decompressed(*again);
  if (xenoscope::AsBytes(plain).size() != size ||
      plain != xenoscope::AsText(std::as_bytes(std::span(data, size)))) {
    std::abort();
  }
  Merge(slice->slice, slice->dictionary);
  return 0;
}
