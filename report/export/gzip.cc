#include "report/export/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>

#include "base/error.h"

namespace xenoscope::report {

absl::StatusOr<std::string> Gzip(std::string_view bytes) {
  // adding 16 gives the gzip format (zlib.h, deflateInit2)
  constexpr int kGzipWindow = MAX_WBITS + 16;
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, /*memLevel=*/8,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    return InternalError("zlib cannot begin to compress");
  }
  std::string out;
  std::array<char, size_t{1} << 16> piece{};
  int result = Z_OK;
  while (result == Z_OK) {
    const size_t in = std::min<size_t>(bytes.size(), std::numeric_limits<uInt>::max());
    // zlib's interface has no const, but zlib does not write there.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(in);
    stream.next_out = reinterpret_cast<Bytef*>(piece.data());
    stream.avail_out = piece.size();
    result = deflate(&stream, in == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    bytes.remove_prefix(in - stream.avail_in);
    out.append(piece.data(), piece.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  if (result != Z_STREAM_END) return InternalError("zlib cannot compress: error {}", result);
  return out;
}

}  // namespace xenoscope::report
