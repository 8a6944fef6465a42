// A slice as bytes comes back as it was, and other bytes are refused.
#include "store/slice_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "store/bounded_text.h"
#include "store/tables.h"

namespace xenoscope::store {
namespace {

using ::testing::HasSubstr;

// A slice with a row in each table.
KeyedSlice MakeSent() {
  KeyedSlice sent;
  Slice& slice = sent.slice;
  slice.head = {.host = "this host",
                .begin_ns = 100,
                .end_ns = 200,
                .clock_error_ns = 5,
                .clock_hz = 2'000'000'000,
                .event = "cycles"};
  const VcpuNumber vcpu = sent.dictionary.vcpus.Intern({"web", 3});
  const ContextNumber exit =
      sent.dictionary.contexts.Intern({correlate::ContextKind::kExit, "VMEXIT_CPUID", true});
  const CodeNumber code = sent.dictionary.codes.Intern({Mode::kXen, "xen", "do_cpuid"});
  slice.sums.strata.push_back({vcpu, exit, 1e6, 2, {3, 5, 2}});
  slice.sums.vcpus.push_back({vcpu, {2, 3, 5}, 5, {{1, 1, 1}, {3, 5, 2}}, 2, 40});
  slice.sums.pairs.push_back({vcpu, exit, exit, 5});
  slice.sums.parts.push_back({vcpu, exit, code, {1.5, 1.25, 2}, 2});
  slice.sums.unions.push_back({vcpu, code, {1.25, 2}});
  slice.sums.crosses.push_back({kFunctionColumn, vcpu, kAllContexts, code, 0.25});
  slice.sums.counters.push_back({"samples", 3});
  slice.sums.trace.push_back({kWaitFigure, vcpu, "preempt", "", "other 1", 4, 500});
  return sent;
}

std::vector<std::byte> BytesOf(const KeyedSlice& slice) {
  const auto bytes = ToBytes(slice);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return *bytes;
}

std::string Plain(const KeyedSlice& slice) {
  const std::vector<std::byte> bytes = BytesOf(slice);
  std::string plain(ZSTD_getFrameContentSize(bytes.data(), bytes.size()), '\0');
  ZSTD_decompress(plain.data(), plain.size(), bytes.data(), bytes.size());
  return plain;
}

absl::StatusOr<KeyedSlice> FromPlain(const std::string& plain) {
  std::vector<std::byte> bytes(ZSTD_compressBound(plain.size()));
  bytes.resize(ZSTD_compress(bytes.data(), bytes.size(), plain.data(), plain.size(), 1));
  return FromBytes(bytes);
}

std::string WhyNot(const absl::StatusOr<KeyedSlice>& slice) {
  return std::string(slice.status().message());
}

TEST(SliceBytesTest, ComesBackAsItWas) {
  const KeyedSlice sent = MakeSent();
  const auto came = FromBytes(BytesOf(sent));
  ASSERT_TRUE(came.ok()) << came.status();
  EXPECT_EQ(came->slice.head.host, "this host");
  EXPECT_EQ(came->slice.head.end_ns, 200);
  EXPECT_EQ(came->slice.head.clock_hz, 2'000'000'000U);
  EXPECT_EQ(came->dictionary.vcpus.all(), sent.dictionary.vcpus.all());
  EXPECT_EQ(came->dictionary.contexts.all(), sent.dictionary.contexts.all());
  EXPECT_EQ(came->dictionary.codes.all(), sent.dictionary.codes.all());
  (void)ForEachTable([&]<typename Sums>() {
    const std::vector<Sums>& rows = came->slice.sums.*Table<Sums>::kRows;
    const std::vector<Sums>& expected = sent.slice.sums.*Table<Sums>::kRows;
    EXPECT_EQ(rows.size(), expected.size());
    for (size_t i = 0; i < rows.size() && i < expected.size(); ++i) {
      EXPECT_EQ(Table<Sums>::Fields(rows[i]), Table<Sums>::Fields(expected[i]))
          << Table<Sums>::kName;
    }
    return absl::OkStatus();
  });
}

TEST(SliceBytesTest, RefusesOtherBytes) {
  EXPECT_THAT(WhyNot(FromBytes({})), HasSubstr("it is no slice"));
  EXPECT_THAT(WhyNot(FromBytes(AsBytes("not a frame at all"))), HasSubstr("it is no slice"));
  EXPECT_THAT(WhyNot(FromPlain("XSSX\1\0\0\0")), HasSubstr("it is no slice"));
  std::vector<std::byte> cut = BytesOf(MakeSent());
  cut.resize(cut.size() - 5);
  EXPECT_THAT(WhyNot(FromBytes(cut)), HasSubstr("damaged"));
  std::string newer = Plain(MakeSent());
  newer[4] = 2;
  EXPECT_THAT(WhyNot(FromPlain(newer)), HasSubstr("version 2"));
}

// Wherever it is cut, or a byte follows.
TEST(SliceBytesTest, RefusesWhatIsNotWhole) {
  const std::string plain = Plain(MakeSent());
  ASSERT_TRUE(FromPlain(plain).ok());
  for (size_t size = 0; size < plain.size(); ++size) {
    EXPECT_FALSE(FromPlain(plain.substr(0, size)).ok()) << size;
  }
  EXPECT_FALSE(FromPlain(plain + '\0').ok());
}

TEST(SliceBytesTest, RefusesWhatNoSliceHas) {
  const auto why_not = [](auto change) {
    KeyedSlice slice = MakeSent();
    change(slice);
    return WhyNot(FromBytes(BytesOf(slice)));
  };
  const auto infinite = std::numeric_limits<double>::infinity();
  EXPECT_THAT(why_not([&](KeyedSlice& s) { s.slice.sums.parts[0].sums.x = infinite; }),
              HasSubstr("damaged row"));
  EXPECT_THAT(why_not([](KeyedSlice& s) { s.slice.sums.parts[0].vcpu = {1}; }),
              HasSubstr("other bytes"));
  EXPECT_THAT(why_not([](KeyedSlice& s) { s.slice.sums.parts[0].code = {7}; }),
              HasSubstr("other bytes"));
  EXPECT_THAT(why_not([](KeyedSlice& s) { s.slice.sums.pairs[0].a = {7}; }),
              HasSubstr("other bytes"));
  EXPECT_THAT(why_not([](KeyedSlice& s) { s.slice.head.host = "\33[31m"; }),
              HasSubstr("other bytes"));
  EXPECT_THAT(why_not([](KeyedSlice& s) { s.slice.head.event = std::string(kMaxName + 1, 'x'); }),
              HasSubstr("other bytes"));
  EXPECT_THAT(why_not([](KeyedSlice& s) { s.slice.head.end_ns = 0; }), HasSubstr("a day at most"));
}

TEST(SliceBytesTest, BoundsItsSize) {
  KeyedSlice slice = MakeSent();
  for (int i = 0; i < 400'000; ++i) slice.slice.sums.parts.push_back(slice.slice.sums.parts[0]);
  EXPECT_THAT(std::string(ToBytes(slice).status().message()), HasSubstr("shorter time"));
  // Zeros, of which few bytes make many.
  EXPECT_THAT(WhyNot(FromPlain(std::string(kMaxPlainSliceBytes + 1, '\0'))),
              HasSubstr("more than 16 MB"));
}

}  // namespace
}  // namespace xenoscope::store
