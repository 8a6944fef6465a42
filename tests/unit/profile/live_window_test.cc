// A window over a growing recording.
//
//   Advance   0     1     2     3     4        once a second, window of 2 s
//   bytes     0    10    20    30    40        of the trace, one write before each Advance
//   part of Advance 3: what was written between Advance 0 and Advance 2
#include "profile/live_window.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "recording/layout.h"

namespace xenoscope::profile {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;

class LiveWindowTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "live_window.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    path_ = name;
    fs::create_directory(path_ + "/samples");
    info_.sources.emplace_back().name = "perf";
  }
  void TearDown() override { fs::remove_all(path_); }

  std::string TracePath() const { return path_ + '/' + std::string(recording::kTraceFile); }
  std::string SamplesPath() const { return path_ + '/' + recording::SamplesPath("perf"); }

  static void Grow(const std::string& file, size_t bytes) {
    std::ofstream(file, std::ios::binary | std::ios::app) << std::string(bytes, 'x');
  }

  // Advances the window at `second`, whose TSC is 100 times that.
  LiveWindow::Part Advance(LiveWindow& window, int second) const {
    return window.Advance(info_, std::chrono::steady_clock::time_point(seconds(second)),
                          Tsc{static_cast<uint64_t>(second) * 100});
  }

  std::string path_;
  recording::RecordingInfo info_;
};

TEST_F(LiveWindowTest, IsEmptyAfterFirstAdvance) {
  LiveWindow window(path_, seconds(2));
  EXPECT_TRUE(Advance(window, 0).range.Empty());
}

TEST_F(LiveWindowTest, EndsAtPreviousAdvance) {
  LiveWindow window(path_, seconds(2));
  LiveWindow::Part part;
  for (int second = 0; second <= 4; ++second) {
    part = Advance(window, second);
    if (second == 3) {
      EXPECT_EQ(part.range, (TscRange{Tsc{0}, Tsc{200}}));
      EXPECT_EQ(part.trace_begin, 0U);
    }
    Grow(TracePath(), 10);
    Grow(SamplesPath(), 3);
  }
  EXPECT_EQ(part.range, (TscRange{Tsc{100}, Tsc{300}}));
  EXPECT_EQ(part.trace_begin, 10U);
  ASSERT_EQ(part.samples_begin.size(), 1U);
  EXPECT_EQ(part.samples_begin[0], 3U);
}

// What was taken up to the end is written two seconds later at the latest.
TEST_F(LiveWindowTest, EndsALagBeforeThePresent) {
  LiveWindow window(path_, seconds(2), seconds(2));
  LiveWindow::Part part;
  for (int second = 0; second <= 5; ++second) {
    part = Advance(window, second);
    EXPECT_EQ(part.range.Empty(), second < 3) << second;
    Grow(TracePath(), 10);
  }
  EXPECT_EQ(part.range, (TscRange{Tsc{100}, Tsc{300}}));
  EXPECT_EQ(part.trace_begin, 10U);
  EXPECT_EQ(part.trace_end, 40U);
}

TEST_F(LiveWindowTest, PunchingHolesKeepsHeaderAndLength) {
  constexpr size_t kPage = 4096;
  Grow(TracePath(), 4 * kPage);
  const LiveWindow window(path_, seconds(2));
  window.PunchHoles(info_, {.range = {}, .trace_begin = 3 * kPage, .samples_begin = {}});
  EXPECT_EQ(fs::file_size(TracePath()), 4 * kPage);
  std::ifstream file(TracePath(), std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(bytes.substr(0, kPage), std::string(kPage, 'x'));
  EXPECT_EQ(bytes.substr(3 * kPage), std::string(kPage, 'x'));
}

}  // namespace
}  // namespace xenoscope::profile
