// Livepatches of a simulated Xen, and what its console prints about them.
#include "sampler/xen/livepatch_monitor.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr uint32_t kAtOnce = 16;  // bytes that one read gives: lists come in pieces

struct FakeConsole {
  std::vector<std::string> livepatches;
  uint32_t version = 1;
  size_t ring = 4096;  // bytes that the console keeps
  // All that it has ever printed.
  std::string console = "(XEN) booted\n(XEN) 'x' pressed - Dumping all livepatch patches\n";
  int held = 0;  // number of times that another process holds the list when the key is pressed
  int pressed = 0;
  int count_error = 0;
  int key_error = 0;
  int read_error = 0;

  void Load(const std::string& name) {
    livepatches.push_back(name);
    ++version;
  }
};

class FakeConsoleCalls final : public ConsoleCalls {
 public:
  explicit FakeConsoleCalls(FakeConsole& xen) : xen_(xen) {}

  int CountLivepatches(LivepatchCount& count) override {
    count = {static_cast<uint32_t>(xen_.livepatches.size()), xen_.version};
    return xen_.count_error;
  }
  int PressKey(char key) override {
    EXPECT_EQ(key, 'x');
    ++xen_.pressed;
    xen_.console += "(XEN) 'x' pressed - Dumping all livepatch patches\n";
    if (xen_.held > 0) {
      --xen_.held;
      xen_.console += "(XEN) Lock held. Try again.\n";
      return 0;
    }
    for (size_t i = 0; i < xen_.livepatches.size(); ++i) {
      xen_.console += fmt::format(
          "(XEN)  name={} state=APPLIED(2) {:x} (.data={:x}, .rodata=0) using 1 pages.\n",
          xen_.livepatches[i], (i + 1) * 0x1000, (i + 2) * 0x1000);
    }
    return xen_.key_error;
  }
  int ReadConsole(bool from_index, uint32_t& index, std::string& text) override {
    const size_t oldest = xen_.console.size() - std::min(xen_.ring, xen_.console.size());
    const size_t begin = from_index ? std::max<size_t>(index, oldest) : oldest;
    const std::string piece = xen_.console.substr(begin, kAtOnce);
    text += piece;
    index = static_cast<uint32_t>(begin + piece.size());
    return xen_.read_error;
  }

 private:
  FakeConsole& xen_;
};

class LivepatchMonitorTest : public testing::Test {
 protected:
  FakeConsole xen_;
  LivepatchMonitor monitor_{std::make_unique<FakeConsoleCalls>(xen_)};
};

TEST_F(LivepatchMonitorTest, SendsNoDebugKeyWithoutLivepatches) {
  EXPECT_EQ(monitor_.Poll().value(), "");
  ++xen_.version;  // one came and went
  EXPECT_EQ(monitor_.Poll().value(), "");
  EXPECT_EQ(xen_.pressed, 0);
}

TEST_F(LivepatchMonitorTest, ListsAfterLoadAndUnload) {
  xen_.Load("first");
  const std::string before = xen_.console;
  const std::string list = monitor_.Poll().value();
  EXPECT_THAT(list, HasSubstr("name=first"));
  EXPECT_EQ(before + list, xen_.console);
  EXPECT_EQ(monitor_.Poll().value(), "");
  EXPECT_EQ(xen_.pressed, 1);
  xen_.Load("second");
  EXPECT_THAT(monitor_.Poll().value(), HasSubstr("second"));
  xen_.livepatches.erase(xen_.livepatches.begin());
  ++xen_.version;
  EXPECT_THAT(monitor_.Poll().value(), Not(HasSubstr("first")));
}

TEST_F(LivepatchMonitorTest, RetriesWhenXenIsBusy) {
  xen_.Load("a");
  xen_.held = 2;
  EXPECT_THAT(monitor_.Poll().value(), HasSubstr("name=a"));
  EXPECT_EQ(xen_.pressed, 3);
  ++xen_.version;
  xen_.held = 1000;
  EXPECT_THAT(std::string(Message(monitor_.Poll().status())), HasSubstr("lists 0"));
}

TEST_F(LivepatchMonitorTest, ReportsShortConsoleRing) {
  for (int i = 0; i < 100; ++i) xen_.Load("long");
  const auto list = monitor_.Poll();
  EXPECT_EQ(list.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(list.status())), HasSubstr("100 livepatches"));
  EXPECT_THAT(std::string(Message(list.status())), HasSubstr("conring_size="));
  EXPECT_EQ(monitor_.Poll().value(), "");  // once is enough
}

TEST_F(LivepatchMonitorTest, XenWithoutLivepatchSupportIsNoError) {
  for (const int error : {-EOPNOTSUPP, -ENOSYS}) {
    xen_.count_error = error;
    EXPECT_EQ(monitor_.Poll().value(), "");
  }
}

TEST_F(LivepatchMonitorTest, ReportsRefusal) {
  xen_.Load("a");
  xen_.count_error = -EPERM;
  EXPECT_THAT(std::string(Message(monitor_.Poll().status())), HasSubstr("livepatches"));
  xen_.count_error = 0;
  xen_.key_error = -EPERM;
  EXPECT_THAT(std::string(Message(monitor_.Poll().status())), HasSubstr("debug key"));
  ++xen_.version;
  xen_.read_error = -EPERM;
  EXPECT_THAT(std::string(Message(monitor_.Poll().status())), HasSubstr("console"));
}

}  // namespace
}  // namespace xenoscope::sampler
