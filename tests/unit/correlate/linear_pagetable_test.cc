#include "correlate/linear_pagetable.h"

#include <gtest/gtest.h>

namespace xenoscope::correlate {
namespace {

struct Case {
  uint32_t levels;
  Address va;
  uint32_t level;  // 0: none
  Address maps;
};

TEST(LinearPagetable, LevelAndMappedAddressFollowFromTheAddress) {
  const Case cases[] = {
      {2, 0xbffffffc, 0, 0},
      {2, 0xc0000000, 1, 0},
      {2, 0xc0000ffc, 1, 0x3ff000},
      {2, 0xc0300000, 2, 0},
      {2, 0xc0300c00, 2, 0xc0000000},
      {2, 0xc03ffffc, 1, 0xfffff000},
      {2, 0xc0400000, 0, 0},
      {3, 0xc0000008, 1, 0x1000},
      {3, 0xc0600008, 2, 0x200000},
      {3, 0xc0603ff8, 2, 0xffe00000},
      {3, 0xc07ffff8, 1, 0xfffff000},
      {3, 0xc0800000, 0, 0},
      {4, 0xfffff68000000000, 1, 0},
      {4, 0xfffff68000000008, 1, 0x1000},
      {4, 0xfffff6fffffffff8, 1, 0xfffffffffffff000},
      {4, 0xfffff6fb40000008, 2, 0x200000},
      {4, 0xfffff6fb7da00008, 3, 0x40000000},
      {4, 0xfffff6fb7dbed008, 4, 0x8000000000},
      {4, 0xfffff70000000000, 0, 0},
      {5, 0xfffff68000000000, 0, 0},
  };
  for (const Case& c : cases) {
    const auto entry = FindLinearEntry(c.levels, c.va);
    EXPECT_EQ(entry ? entry->level : 0, c.level) << std::hex << c.va;
    EXPECT_EQ(entry ? entry->maps : 0, c.maps) << std::hex << c.va;
  }
}

}  // namespace
}  // namespace xenoscope::correlate
