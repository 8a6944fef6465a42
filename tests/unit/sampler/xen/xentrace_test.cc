// The xentrace child, with small scripts instead of xentrace: it starts, dies, fills the disk.
#include "sampler/xen/xentrace.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class XentraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "xentrace_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    const char* const path = std::getenv("PATH");
    path_before_ = path == nullptr ? "" : path;
    setenv("PATH", (name + ":" + path_before_).c_str(), 1);
  }
  void TearDown() override {
    setenv("PATH", path_before_.c_str(), 1);
    fs::remove_all(directory_);
  }
  // Makes xentrace this script; its last argument, the file to write, is $out.
  void PretendXentraceIs(const std::string& script) {
    const fs::path path = directory_ / "xentrace";
    std::ofstream(path) << "#!/bin/sh\nfor out; do :; done\n" << script;
    fs::permissions(path, fs::perms::owner_all);
  }
  std::string Trace() const { return (directory_ / "trace").string(); }
  // Starts it, writing to a new file.
  absl::StatusOr<std::unique_ptr<Xentrace>> Start(const TraceRequest& request) const {
    File file(open(Trace().c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    return Xentrace::Start(request, std::move(file), Trace());
  }
  std::string Content() const {
    std::ifstream file(Trace());
    return {std::istreambuf_iterator<char>(file), {}};
  }

  fs::path directory_;
  std::string path_before_;
};

TEST_F(XentraceTest, KeepsOutputFlushedAtStop) {
  PretendXentraceIs(
      "echo chatter\n"
      "trap 'echo last >$out; exit 0' TERM\n"
      "echo $* >$out\n"
      "while :; do sleep 0.01; done\n");
  auto xentrace = Start({"hvm", {0x0008f000}, 64, 10});
  ASSERT_TRUE(xentrace.ok()) << xentrace.status();
  EXPECT_TRUE((*xentrace)->Check().ok());
  EXPECT_TRUE((*xentrace)->Stop().ok());
  EXPECT_THAT(Content(), StartsWith("-D -e 0x0008f000 -S 64 -s 10 /"));
  EXPECT_THAT(Content(), EndsWith("\nlast\n"));
  EXPECT_EQ((*xentrace)->bytes(), Content().size());
}

// Like xentrace, the script takes an interrupted write for a full disk.
TEST_F(XentraceTest, StopDoesNotInterruptAWrite) {
  PretendXentraceIs(
      "exec python3 -c '\n"
      "import os, signal, sys, time\n"
      "ended = []\n"
      "signal.signal(signal.SIGTERM, lambda *_: ended.append(1))\n"
      "out = os.open(sys.argv[1], os.O_WRONLY)\n"
      "much = bytes(16 << 20)\n"
      "while not ended:\n"
      "  if os.write(out, much) != len(much): sys.exit(\"broken\")\n"
      "  time.sleep(0.02)\n"
      "' $out\n");
  for (int i = 0; i < 3; ++i) {
    fs::remove(Trace());
    auto xentrace = Start({});
    ASSERT_TRUE(xentrace.ok()) << xentrace.status();
    const absl::Status stopped = (*xentrace)->Stop();
    EXPECT_TRUE(stopped.ok()) << stopped;
    EXPECT_EQ(fs::file_size(Trace()) % (16U << 20), 0U);
  }
}

TEST_F(XentraceTest, DetectsRunningXentrace) {
  PretendXentraceIs("echo 'ERROR: failed to bind to VIRQ port (17 = File exists)' >&2; exit 1\n");
  EXPECT_THAT(std::string(Message(Start({}).status())), HasSubstr("running already"));
}

TEST_F(XentraceTest, ReportsStandardErrorAtExit) {
  PretendXentraceIs("echo starting >&2; echo 'no buffers' >&2; exit 3\n");
  const std::string message(Message(Start({}).status()));
  EXPECT_THAT(message, HasSubstr("status 3: no buffers"));
}

TEST_F(XentraceTest, ReportsFatalSignal) {
  PretendXentraceIs("echo 'change evtmask to 0xffff000'; kill -9 $$\n");
  EXPECT_THAT(std::string(Message(Start({}).status())),
              AllOf(HasSubstr("xentrace was ended by SIGKILL"), Not(HasSubstr("evtmask"))));
}

TEST_F(XentraceTest, DetectsLaterExit) {
  PretendXentraceIs("echo data >$out; sleep 0.1; echo gone >&2; exit 1\n");
  auto xentrace = Start({});
  ASSERT_TRUE(xentrace.ok()) << xentrace.status();
  absl::Status status;
  for (int i = 0; i < 500 && status.ok(); ++i) {
    usleep(10'000);
    status = (*xentrace)->Check();
  }
  EXPECT_THAT(std::string(Message(status)), HasSubstr("gone"));
  EXPECT_EQ(Content(), "data\n");
}

TEST_F(XentraceTest, MissingXentraceIsAnErrorWithRemedy) {
  setenv("PATH", directory_.c_str(), 1);
  const absl::Status status = Start({}).status();
  if (fs::exists("/usr/lib/xen-4.17/bin/xentrace")) GTEST_SKIP() << "there is one here";
  EXPECT_THAT(std::string(Message(status)), HasSubstr("--no-trace"));
}

}  // namespace
}  // namespace xenoscope::sampler
