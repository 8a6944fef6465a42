#include "report/export/gzip.h"

#include <libdeflate.h>

#include <cstddef>
#include <memory>

#include "base/error.h"

namespace xenoscope::report {

absl::StatusOr<std::string> Gzip(std::string_view bytes) {
  constexpr int kLevel = 6;  // gzip's own
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> compressor(
      libdeflate_alloc_compressor(kLevel), &libdeflate_free_compressor);
  if (compressor == nullptr) return InternalError("there is no memory to compress with");
  std::string out(libdeflate_gzip_compress_bound(compressor.get(), bytes.size()), '\0');
  const size_t size = libdeflate_gzip_compress(compressor.get(), bytes.data(), bytes.size(),
                                               out.data(), out.size());
  if (size == 0) return InternalError("libdeflate cannot compress {} bytes", bytes.size());
  out.resize(size);
  return out;
}

}  // namespace xenoscope::report
