// Tests what the page packs: the page finds the bytes again, however many pieces they are in.
#include "report/html/packed.h"

#include <gtest/gtest.h>
#include <libdeflate.h>

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_split.h"

namespace xenoscope::report {
namespace {

std::string Unpacked(const std::string& piece) {
  std::string gzip;
  EXPECT_TRUE(absl::Base64Unescape(piece, &gzip));
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> from(
      libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
  std::string bytes(kPackedPiece, '\0');
  size_t size = 0;
  EXPECT_EQ(libdeflate_gzip_decompress(from.get(), gzip.data(), gzip.size(), bytes.data(),
                                       bytes.size(), &size),
            LIBDEFLATE_SUCCESS);
  bytes.resize(size);
  return bytes;
}

TEST(Packed, HasAllBytesInPieces) {
  struct Case {
    size_t length;
    size_t pieces;
  };
  for (const auto& [length, pieces] : std::vector<Case>{
           {0, 1}, {1, 1}, {kPackedPiece, 1}, {kPackedPiece + 1, 2}, {3 * kPackedPiece - 5, 3}}) {
    std::string bytes(length, '\0');
    for (size_t i = 0; i < length; ++i) bytes[i] = static_cast<char>(i * i / 7);
    const std::string packed = Packed(bytes).value();
    const std::vector<std::string> split = absl::StrSplit(packed, ' ');
    EXPECT_EQ(split.size(), pieces) << length;
    std::string all;
    for (const std::string& piece : split) all += Unpacked(piece);
    EXPECT_TRUE(all == bytes) << length;
  }
}

}  // namespace
}  // namespace xenoscope::report
