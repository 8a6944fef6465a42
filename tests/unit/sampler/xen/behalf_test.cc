// On whose behalf processes work, with files in the place of /proc.
#include "sampler/xen/behalf.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

namespace xenoscope::sampler {
namespace {

using namespace std::string_literals;

constexpr uint32_t kFlagsOfKernelThread = 0x00208040;
constexpr uint32_t kFlagsOfProcess = 0x00400100;

TEST(Behalf, ReadsNamesOfBackEnds) {
  EXPECT_EQ(DomainInBackEndName("2.xvda-0"), DomainId{2});
  EXPECT_EQ(DomainInBackEndName("17.hda-3"), DomainId{17});
  EXPECT_EQ(DomainInBackEndName("vif2.0-q0-guest"), DomainId{2});
  EXPECT_EQ(DomainInBackEndName("vif300.12-q1-de"), DomainId{300});
}

TEST(Behalf, OtherNamesAreOfNoBackEnd) {
  for (const char* name :
       {"", "2", "2.", "2.0-q0", "xvda-0", "2.xvda", "vif", "vif2", "vif2.xvda-0", "vif2.0",
        "-2.xvda-0", "kworker/0:2-cgr", "32752.xvda-0", "4294967298.xvda-0", "2 .xvda-0"}) {
    EXPECT_EQ(DomainInBackEndName(name), std::nullopt) << name;
  }
}

TEST(Behalf, ReadsCommandLines) {
  EXPECT_EQ(DomainInCommandLine("/usr/libexec/qemu\0-xen-domid\0"s + "5\0-no-shutdown\0"s),
            DomainId{5});
  EXPECT_EQ(DomainInCommandLine("qemu\0-xen-domid\0"s + "5"s), DomainId{5});
  for (const std::string& line :
       {""s, "qemu"s, "qemu\0-xen-domid"s, "qemu\0-xen-domid\0"s, "qemu\0-xen-domid\0x\0"s,
        "qemu\0-xen-domid\0"s + "5x\0"s, "qemu\0-xen-domid\0-5\0"s, "qemu\0-xen-domid 5\0"s,
        "qemu\0-xen-domid\0"s + "99999\0"s}) {
    EXPECT_EQ(DomainInCommandLine(line), std::nullopt) << line;
  }
}

class BehalfFinderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    proc_ = (std::filesystem::temp_directory_path() / "behalf_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(proc_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(proc_); }

  void Process(uint32_t pid, const std::string& name, const std::string& command_line,
               uint32_t flags = kFlagsOfProcess) {
    const std::string directory = fmt::format("{}/{}", proc_, pid);
    std::filesystem::create_directory(directory);
    std::ofstream(directory + "/cmdline") << command_line;
    std::ofstream(directory + "/stat")
        << fmt::format("{} ({}) S 2 0 0 0 -1 {} 0 0 0 0 0 0\n", pid, name, flags);
  }
  std::optional<DomainId> Find(uint32_t pid, std::string_view name) {
    // The toolstack says that process 100 is the device model of domain 5.
    const BehalfFinder finder(
        [](DomainId domain) {
          return domain == DomainId{5} ? std::optional<uint32_t>(100) : std::nullopt;
        },
        proc_);
    return finder.Find(pid, name);
  }

  std::string proc_;
};

TEST_F(BehalfFinderTest, FindsDeviceModel) {
  Process(100, "qemu-system-i38", "qemu\0-xen-domid\0"s + "5\0"s);
  EXPECT_EQ(Find(100, "qemu-system-i38"), DomainId{5});
}

TEST_F(BehalfFinderTest, CommandLineAloneDoesNotDecide) {
  Process(101, "qemu-system-i38", "qemu\0-xen-domid\0"s + "5\0"s);
  EXPECT_EQ(Find(101, "qemu-system-i38"), std::nullopt);
  Process(102, "qemu-system-i38", "qemu\0-xen-domid\0"s + "6\0"s);
  EXPECT_EQ(Find(102, "qemu-system-i38"), std::nullopt);
  // A number that a process has again, after the device model's end.
  Process(100, "sh", "sh\0"s);
  EXPECT_EQ(Find(100, "sh"), std::nullopt);
}

TEST_F(BehalfFinderTest, FindsThreadsOfBackEnds) {
  Process(200, "7.xvda-0", "", kFlagsOfKernelThread);
  EXPECT_EQ(Find(200, "7.xvda-0"), DomainId{7});
  Process(201, "vif7.0-q0-guest", "", kFlagsOfKernelThread);
  EXPECT_EQ(Find(201, "vif7.0-q0-guest"), DomainId{7});
}

TEST_F(BehalfFinderTest, NamesOfUsersProcessesDoNotDecide) {
  Process(200, "7.xvda-0", "7.xvda-0\0"s);
  EXPECT_EQ(Find(200, "7.xvda-0"), std::nullopt);
  // Its name looks like the end of the name, and the flags of a thread of the kernel.
  Process(201, fmt::format("x) S 2 0 0 0 -1 {} ", kFlagsOfKernelThread), "");
  EXPECT_EQ(Find(201, "7.xvda-0"), std::nullopt);
}

TEST_F(BehalfFinderTest, EndedProcessWorksForNone) {
  EXPECT_EQ(Find(300, "7.xvda-0"), std::nullopt);
}

}  // namespace
}  // namespace xenoscope::sampler
