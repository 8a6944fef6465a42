// A ring of perf events returns what was put into it, across its end too, and nothing else.
#include "sampler/perf/perf_ring.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/unit/sampler/fake_perf.h"

namespace xenoscope::sampler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<std::byte> Record(uint64_t value, size_t words = 1) {
  RecordBytes record(PERF_RECORD_SAMPLE);
  for (size_t i = 0; i < words; ++i) record.Add(value);
  return record.Done();
}

// Returns the first word of each record.
std::vector<uint64_t> Values(PerfRing& ring) {
  std::vector<uint64_t> values;
  ring.Drain([&values](Bytes record) {
    values.push_back(Load<uint64_t>(record, sizeof(perf_event_header)).value_or(~0ULL));
  });
  return values;
}

TEST(PerfRingTest, ReadsRecordsOnceInOrder) {
  FakeRing fake;
  PerfRing ring(fake.Mapping());
  EXPECT_THAT(Values(ring), IsEmpty());
  fake.Put(Record(1));
  fake.Put(Record(2, 5));
  EXPECT_THAT(Values(ring), ElementsAre(1, 2));
  EXPECT_THAT(Values(ring), IsEmpty());
  EXPECT_EQ(fake.page.data_tail, fake.page.data_head);
}

TEST(PerfRingTest, ReadsRecordThatWraps) {
  FakeRing fake;
  PerfRing ring(fake.Mapping());
  for (int i = 0; i < 400; ++i) {  // of 56 bytes: every offset of the ring's end is met
    fake.Put(Record(static_cast<uint64_t>(i), 6));
    size_t equal = 0;
    ring.Drain([&](Bytes record) {
      ASSERT_EQ(record.size(), 56);
      for (size_t word = 0; word < 6; ++word) {
        equal += Load<uint64_t>(record, 8 + 8 * word) == static_cast<uint64_t>(i) ? 1 : 0;
      }
    });
    ASSERT_EQ(equal, 6) << i;
  }
  EXPECT_EQ(ring.damaged(), 0);
}

TEST(PerfRingTest, ReadsFullRing) {
  FakeRing fake;
  PerfRing ring(fake.Mapping());
  for (size_t i = 0; i < FakeRing::kSize / 16; ++i) fake.Put(Record(i));
  EXPECT_EQ(Values(ring).size(), FakeRing::kSize / 16);
}

struct Nonsense {
  uint16_t size;
  const char* why;
};

TEST(PerfRingTest, CountsImpossibleSizes) {
  for (const auto& [size, why] : std::vector<Nonsense>{{0, "would never end"},
                                                       {4, "less than a header"},
                                                       {20, "not of whole words"},
                                                       {64, "more than there is"}}) {
    FakeRing fake;
    PerfRing ring(fake.Mapping());
    fake.Put(Record(7));
    auto bad = Record(8, 2);
    perf_event_header header{};
    std::memcpy(&header, bad.data(), sizeof header);
    header.size = size;
    std::memcpy(bad.data(), &header, sizeof header);
    fake.Put(bad);
    EXPECT_THAT(Values(ring), ElementsAre(7)) << why;
    EXPECT_EQ(ring.damaged(), 24) << why;
    fake.Put(Record(9));
    EXPECT_THAT(Values(ring), ElementsAre(9)) << why;
  }
}

TEST(PerfRingTest, CountsOverrunAsDamage) {
  FakeRing fake;
  PerfRing ring(fake.Mapping());
  fake.page.data_head = 3 * FakeRing::kSize;
  EXPECT_THAT(Values(ring), IsEmpty());
  EXPECT_EQ(ring.damaged(), FakeRing::kSize);
  fake.Put(Record(1));
  EXPECT_THAT(Values(ring), ElementsAre(1));
}

}  // namespace
}  // namespace xenoscope::sampler
