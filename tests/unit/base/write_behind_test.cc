#include "base/write_behind.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace xenoscope {
namespace {

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

std::optional<off_t> ResidentBytes(int file, off_t size) {
  void* const at = mmap(nullptr, static_cast<size_t>(size), PROT_READ, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) return std::nullopt;
  const off_t page = sysconf(_SC_PAGESIZE);
  std::vector<unsigned char> resident(static_cast<size_t>((size + page - 1) / page));
  const int failed = mincore(at, static_cast<size_t>(size), resident.data());
  munmap(at, static_cast<size_t>(size));
  if (failed != 0) return std::nullopt;
  return page * std::count_if(resident.begin(), resident.end(), [](int r) { return (r & 1) != 0; });
}

bool IsInMemoryOnly(int file) {
  struct statfs status = {};
  return fstatfs(file, &status) != 0 || status.f_type == TMPFS_MAGIC;
}

TEST(WriteBehind, KeepsTailOfLongFileCached) {
  const File file(std::tmpfile(), std::fclose);
  ASSERT_NE(file, nullptr);
  const int descriptor = fileno(file.get());
  if (IsInMemoryOnly(descriptor)) GTEST_SKIP() << "temporary files are in memory here";
  const std::string step(WriteBehind::kStep, 'x');
  const off_t size = WriteBehind::kShortBytes * 2;
  {
    WriteBehind behind(descriptor);
    for (off_t end = 0; end < size; end += WriteBehind::kStep) {
      ASSERT_EQ(write(descriptor, step.data(), step.size()), WriteBehind::kStep);
      ASSERT_EQ(fdatasync(descriptor), 0);  // a disk that keeps up, so that the test is no race
      behind.OnWritten();
    }
  }
  const auto resident = ResidentBytes(descriptor, size);
  ASSERT_TRUE(resident);
  EXPECT_GE(*resident, WriteBehind::kCachedBytes);
  EXPECT_LE(*resident, WriteBehind::kCachedBytes + 2 * WriteBehind::kStep);
}

TEST(WriteBehind, KeepsShortFileCached) {
  const File file(std::tmpfile(), std::fclose);
  ASSERT_NE(file, nullptr);
  const std::string step(WriteBehind::kStep, 'x');
  {
    WriteBehind behind(fileno(file.get()));
    for (off_t end = 0; end < WriteBehind::kShortBytes; end += WriteBehind::kStep) {
      ASSERT_EQ(write(fileno(file.get()), step.data(), step.size()), WriteBehind::kStep);
      behind.OnWritten();
    }
  }
  EXPECT_EQ(ResidentBytes(fileno(file.get()), WriteBehind::kShortBytes), WriteBehind::kShortBytes);
}

TEST(WriteBehind, DropsLaterWhatTheKernelKeptAtFirst) {
  // The pages of the first step are mapped, so that the kernel keeps them, until those of the
  // second one are gone. What follows is a hole, without pages.
  const File file(std::tmpfile(), std::fclose);
  ASSERT_NE(file, nullptr);
  const int descriptor = fileno(file.get());
  if (IsInMemoryOnly(descriptor)) GTEST_SKIP() << "temporary files are in memory here";
  const off_t steps = 2 * WriteBehind::kStep;
  const std::string text(steps, 'x');
  ASSERT_EQ(write(descriptor, text.data(), text.size()), steps);
  ASSERT_EQ(fdatasync(descriptor), 0);
  {
    ASSERT_EQ(lseek(descriptor, 0, SEEK_SET), 0);
    WriteBehind behind(descriptor);
    const auto goes_on_to = [&](off_t end) {
      EXPECT_EQ(lseek(descriptor, end, SEEK_SET), end);
      behind.OnWritten();
    };
    void* const mapped =
        mmap(nullptr, WriteBehind::kStep, PROT_READ, MAP_SHARED | MAP_POPULATE, descriptor, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    goes_on_to(2 * WriteBehind::kShortBytes);
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (ResidentBytes(descriptor, steps) != WriteBehind::kStep) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline) << "the second step is kept";
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    munmap(mapped, WriteBehind::kStep);
    goes_on_to(8 * WriteBehind::kShortBytes);
  }
  EXPECT_EQ(ResidentBytes(descriptor, steps), 0);
}

TEST(WriteBehind, IgnoresPipes) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    WriteBehind behind(ends[1]);
    ASSERT_EQ(write(ends[1], "text", 4), 4);
    behind.OnWritten();
  }
  char text[8];
  EXPECT_EQ(read(ends[0], text, sizeof text), 4);
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace xenoscope
