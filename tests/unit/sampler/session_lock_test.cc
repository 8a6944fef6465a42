// One recorder runs at a time, and a killed one leaves a note.
#include "sampler/session_lock.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

class SessionLockTest : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::remove(path_); }
  void TearDown() override { std::filesystem::remove(path_); }

  const std::string path_ =
      (std::filesystem::temp_directory_path() / ("session_lock_test." + std::to_string(getpid())))
          .string();
};

TEST_F(SessionLockTest, RefusesSecondHolder) {
  const auto first = SessionLock::TakeAt(path_);
  ASSERT_TRUE(first.ok()) << first.status();
  const absl::Status second = SessionLock::TakeAt(path_).status();
  EXPECT_EQ(second.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(second)),
              testing::HasSubstr("another xenoscope (process " + std::to_string(getpid()) + ")"));
}

TEST_F(SessionLockTest, NoteOutlivesItsWriter) {
  {
    const auto killed = SessionLock::TakeAt(path_);
    EXPECT_EQ(killed->stale_note(), "");
    ASSERT_TRUE(killed->WriteNote("hpet").ok());
  }
  {
    const auto next = SessionLock::TakeAt(path_);
    EXPECT_EQ(next->stale_note(), "hpet");
    ASSERT_TRUE(next->WriteNote("").ok());
  }
  EXPECT_EQ(SessionLock::TakeAt(path_)->stale_note(), "");
}

}  // namespace
}  // namespace xenoscope::sampler
