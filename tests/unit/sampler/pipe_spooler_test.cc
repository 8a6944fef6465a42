#include "sampler/pipe_spooler.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <string>
#include <thread>

#include "base/error.h"

namespace xenoscope::sampler {
namespace {

using testing::HasSubstr;

struct Pipe {
  Pipe() { EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC), 0); }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) close(end);
    }
  }
  int out() const { return ends[0]; }
  int in() const { return ends[1]; }
  void CloseIn() {
    close(ends[1]);
    ends[1] = -1;
  }

  std::array<int, 2> ends{-1, -1};
};

// Returns a text no two parts of which are the same.
std::string Numbers(size_t bytes) {
  std::string numbers;
  for (int i = 0; numbers.size() < bytes; ++i) numbers += std::to_string(i) + "\n";
  return numbers;
}

void WriteTo(Pipe& pipe, const std::string& text) {
  for (size_t at = 0; at < text.size();) {
    const ssize_t n = write(pipe.in(), text.data() + at, text.size() - at);
    ASSERT_GT(n, 0);
    at += static_cast<size_t>(n);
  }
}

std::string ReadAllOf(Pipe& pipe) {
  std::string all;
  std::array<char, 1 << 16> part{};
  for (ssize_t n = 0; (n = read(pipe.out(), part.data(), part.size())) > 0;) {
    all.append(part.data(), static_cast<size_t>(n));
  }
  return all;
}

TEST(PipeSpooler, StalledFileDoesNotBlockWriter) {
  Pipe from;
  Pipe to;
  const std::string text = Numbers(4 << 20);
  std::string copied;
  std::thread takes;
  {
    PipeSpooler spooler(from.out(), to.in(), "the file");
    WriteTo(from, text);  // all of it, though none of it has been read
    from.CloseIn();
    takes = std::thread([&] { copied = ReadAllOf(to); });
    EXPECT_TRUE(spooler.Finish().ok());
    EXPECT_EQ(spooler.bytes(), text.size());
  }
  to.CloseIn();
  takes.join();
  EXPECT_TRUE(copied == text);
}

TEST(PipeSpooler, StopsReadingAtMemoryLimit) {
  Pipe from;
  Pipe to;
  constexpr size_t kMaxQueued = 100'000;
  constexpr size_t kPipes = 2 << 16;
  constexpr size_t kMaxReadSize = 1 << 16;  // that is read from such a pipe
  PipeSpooler spooler(from.out(), to.in(), "the file", kMaxQueued);
  fcntl(from.in(), F_SETFL, O_NONBLOCK);
  const std::string page(4096, 'x');
  // What is on its way: waits, is being written (all that waited, in one piece), has been read and
  // waits for room, is in pipes. What makes it wait comes on top of what may wait.
  constexpr size_t kBound = 2 * (kMaxQueued + kMaxReadSize) + kMaxReadSize + kPipes;
  size_t taken = 0;
  pollfd room{from.in(), POLLOUT, 0};
  constexpr int kNoMoreMs = 200;  // how long it takes to find that there is no room decides nothing
  while (taken <= kBound && poll(&room, 1, kNoMoreMs) == 1) {
    const ssize_t n = write(from.in(), page.data(), page.size());
    if (n > 0) taken += static_cast<size_t>(n);
  }
  EXPECT_LE(taken, kBound);
  from.CloseIn();
  std::thread takes([&to, &taken] {
    std::array<char, 1 << 16> part{};
    for (size_t left = taken; left > 0;) {
      left -= static_cast<size_t>(read(to.out(), part.data(), part.size()));
    }
  });
  EXPECT_TRUE(spooler.Finish().ok());
  takes.join();
  EXPECT_EQ(spooler.bytes(), taken);
}

// A writer that is told to end must not be in the middle of a write, however slow the disk is.
TEST(PipeSpooler, TakesAllOnceLimitIsLifted) {
  Pipe from;
  Pipe to;
  const std::string text = Numbers(4 << 20);
  std::string copied;
  std::thread takes;
  {
    PipeSpooler spooler(from.out(), to.in(), "the file", /*max_queued=*/1000);
    std::thread lifts([&spooler] { spooler.LiftLimit(); });
    WriteTo(from, text);  // returns only when all of it is taken
    lifts.join();
    from.CloseIn();
    takes = std::thread([&] { copied = ReadAllOf(to); });
    EXPECT_TRUE(spooler.Finish().ok());
  }
  to.CloseIn();
  takes.join();
  EXPECT_TRUE(copied == text);
}

TEST(PipeSpooler, FullDiskIsAnErrorAndDoesNotBlockWriter) {
  Pipe from;
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0);
  PipeSpooler spooler(from.out(), full, "x.xeno/trace.xentrace");
  WriteTo(from, Numbers(1 << 20));
  from.CloseIn();
  EXPECT_THAT(std::string(Message(spooler.Finish())),
              HasSubstr("the disk is full: x.xeno/trace.xentrace is kept up to that point"));
  EXPECT_EQ(spooler.bytes(), 0);
  close(full);
}

TEST(PipeSpooler, EmptyPipeWritesNothing) {
  Pipe from;
  Pipe to;
  PipeSpooler spooler(from.out(), to.in(), "the file");
  from.CloseIn();
  EXPECT_TRUE(spooler.Finish().ok());
  EXPECT_EQ(spooler.bytes(), 0);
}

}  // namespace
}  // namespace xenoscope::sampler
