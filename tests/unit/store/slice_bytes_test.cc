// A slice as bytes comes back as it was, and other bytes are refused.
#include "store/slice_bytes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  EXPECT_THAT(WhyNot(FromBytes(AsBytes("XSSX, no slice at all"))), HasSubstr("it is no slice"));
  std::vector<std::byte> newer = BytesOf(MakeSent());
  newer[4] = std::byte{2};
  EXPECT_THAT(WhyNot(FromBytes(newer)), HasSubstr("version 2"));
}

// Wherever it is cut, or a byte follows.
TEST(SliceBytesTest, RefusesWhatIsNotWhole) {
  std::vector<std::byte> bytes = BytesOf(MakeSent());
  ASSERT_TRUE(FromBytes(bytes).ok());
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(FromBytes(Bytes(bytes).first(size)).ok()) << size;
  }
  bytes.push_back({});
  EXPECT_THAT(WhyNot(FromBytes(bytes)), HasSubstr("other bytes"));
}

TEST(SliceBytesTest, RefusesWhatNoSliceHas) {
  const auto why_not = [](auto change) {
    KeyedSlice slice = MakeSent();
    change(slice);
    return WhyNot(FromBytes(BytesOf(slice)));
  };
  const auto infinite = std::numeric_limits<double>::infinity();
  EXPECT_THAT(why_not([&](KeyedSlice& s) { s.slice.sums.strata[0].cycles = infinite; }),
              HasSubstr("damaged row"));
  EXPECT_THAT(why_not([](KeyedSlice& s) { s.slice.head.event = std::string(kMaxName + 1, 'x'); }),
              HasSubstr("other bytes"));
  EXPECT_THAT(why_not([](KeyedSlice& s) { s.slice.head.end_ns = 0; }), HasSubstr("a day at most"));
}

TEST(SliceBytesTest, BoundsNamesAndSize) {
  KeyedSlice slice = MakeSent();
  slice.slice.head.host = "\33[31m";
  EXPECT_EQ(FromBytes(BytesOf(slice))->slice.head.host, "\\x1b[31m");
  for (int i = 0; i < 5'000; ++i) {
    const CodeNumber code = slice.dictionary.codes.Intern(
        {Mode::kUser, "web", std::to_string(i) + std::string(1000, 'f')});
    slice.slice.sums.parts.push_back(
        {slice.slice.sums.parts[0].vcpu, slice.slice.sums.parts[0].context, code, {1, 1, 1}, 1});
  }
  EXPECT_THAT(std::string(ToBytes(slice).status().message()), HasSubstr("shorter time"));
  EXPECT_THAT(WhyNot(FromBytes(std::vector<std::byte>(kMaxSliceBytes + 1))),
              HasSubstr("more than 4 MB"));
}

}  // namespace
}  // namespace xenoscope::store
