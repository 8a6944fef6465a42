// Maps that processes share.
#include "symbolizer/process_maps.h"

#include <gtest/gtest.h>

#include <vector>

namespace xenoscope::symbolizer {
namespace {

constexpr Address kPage = 0x1000;

ProcessMap MapAt(Address page, uint32_t file) {
  return {page * kPage, (page + 1) * kPage, 0, file};
}

int FileAt(const ProcessMaps& maps, Address page) {
  const ProcessMap* const found = maps.Find(page * kPage);
  return found == nullptr ? -1 : static_cast<int>(found->file);
}

TEST(ProcessMaps, NewestMapOfAnAddressWins) {
  ProcessMaps maps{MapAt(1, 10), MapAt(2, 20)};
  maps.Add(MapAt(1, 11));
  EXPECT_EQ(FileAt(maps, 1), 11);
  EXPECT_EQ(FileAt(maps, 2), 20);
  EXPECT_EQ(FileAt(maps, 3), -1);
  EXPECT_EQ(maps.Find(kPage - 1), nullptr);
  EXPECT_TRUE(ProcessMaps().empty());
}

TEST(ProcessMaps, ForksHaveSeparateMaps) {
  ProcessMaps parent{MapAt(1, 10)};
  ProcessMaps child = parent.Fork();
  parent.Add(MapAt(1, 11));
  child.Add(MapAt(2, 20));
  ProcessMaps grandchild = child.Fork();
  child.Add(MapAt(1, 12));
  struct Case {
    const ProcessMaps& maps;
    int first, second;
  };
  for (const Case& c : {Case{parent, 11, -1}, Case{child, 12, 20}, Case{grandchild, 10, 20}}) {
    EXPECT_EQ(FileAt(c.maps, 1), c.first);
    EXPECT_EQ(FileAt(c.maps, 2), c.second);
    EXPECT_FALSE(c.maps.empty());
  }
}

TEST(ProcessMaps, ForksShareEarlierMaps) {
  ProcessMaps parent;
  for (Address page = 1; page <= 1000; ++page) parent.Add(MapAt(page, 1));
  const ProcessMaps first = parent.Fork();
  const ProcessMap* const shared = first.Find(500 * kPage);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(parent.Fork().Find(500 * kPage), shared);
  ProcessMaps child = parent.Fork();
  child.Add(MapAt(2000, 2));  // this costs one map, not a thousand
  EXPECT_EQ(child.Find(500 * kPage), shared);
}

TEST(ProcessMaps, DestroysLongChainOfForks) {
  ProcessMaps last;
  for (uint32_t i = 0; i < 300'000; ++i) {
    last.Add(MapAt(i, i));
    last = last.Fork();
  }
  EXPECT_EQ(FileAt(last, 0), 0);
}

}  // namespace
}  // namespace xenoscope::symbolizer
