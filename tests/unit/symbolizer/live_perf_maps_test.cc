// JIT functions of a recording that is being made.
#include "symbolizer/live_perf_maps.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace xenoscope::symbolizer {
namespace {

TEST(LivePerfMaps, ReadsFileThatWasReplaced) {
  namespace fs = std::filesystem;
  constexpr AddressSpaceId kProcess{3};
  const fs::path directory = fs::path(testing::TempDir()) / "live_perf_maps.xeno";
  fs::create_directories(directory / "symbols");
  const auto replace = [&](const std::string& text) {
    std::ofstream(directory / "new") << text;
    fs::rename(directory / "new", directory / "symbols/dom0.perf-maps");
  };
  ProcessImages processes;
  processes.SetMaps(kProcess, kDom0, 7,
                    {{0x1000, 0x3000, 0, processes.AddFile(kDom0, "//anon", "")}});
  LivePerfMaps maps;
  maps.ReadNew(directory.string(), processes);
  EXPECT_EQ(processes.Find(kProcess, 0x1010).name, "[no symbols]");
  replace("# 7\n1000 20 run\n");
  maps.ReadNew(directory.string(), processes);
  EXPECT_EQ(processes.Find(kProcess, 0x1010).name, "run");
  maps.ReadNew(directory.string(), processes);
  EXPECT_EQ(processes.Find(kProcess, 0x1010).name, "run");
  replace("# 7\n1000 20 run\n2000 20 later\n");
  maps.ReadNew(directory.string(), processes);
  EXPECT_EQ(processes.Find(kProcess, 0x2010).name, "later");
  fs::remove_all(directory);
}

}  // namespace
}  // namespace xenoscope::symbolizer
