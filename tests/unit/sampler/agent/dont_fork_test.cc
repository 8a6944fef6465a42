// What a sandbox can read of another guest's memory: of a page, and of the rings of a channel.
#include "sampler/agent/dont_fork.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cstddef>
#include <string>

#include "sampler/agent/vchan_channel.h"
#include "sampler/sandbox.h"

#if __has_include(<libxenvchan.h>)
extern "C" {  // Xen's headers lack it
#include <libxenvchan.h>
}
#endif

namespace xenoscope::sampler {
namespace {

constexpr size_t kPage = 4096;

// The memory is shared, as what a guest grants is.
class SharedPages {
 public:
  explicit SharedPages(size_t pages)
      : size_(pages * kPage),
        at_(static_cast<std::byte*>(
            mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;
  ~SharedPages() { munmap(at_, size_); }

  std::byte* page(size_t number) { return at_ + number * kPage; }

 private:
  size_t size_;
  std::byte* at_;
};

// Returns whether a process that starts now can read there.
bool CanSandboxRead(const std::byte* at) {
  auto sandbox = Sandbox::Start({}, [at](int socket) {
    const std::byte there = *static_cast<const volatile std::byte*>(at);
    (void)!send(socket, &there, sizeof there, MSG_NOSIGNAL);
  });
  EXPECT_TRUE(sandbox.ok()) << sandbox.status();
  std::byte there{};
  const bool came = recv(sandbox->socket(), &there, sizeof there, 0) == sizeof there;
  const std::string end = sandbox->End();
  EXPECT_EQ(end == "it ended by signal 11", !came) << end;
  return came;
}

TEST(DontForkTest, ChildProcessDoesNotInheritPages) {
  SharedPages pages(4);
  ASSERT_TRUE(CanSandboxRead(pages.page(1)));
  ASSERT_TRUE(DontFork({pages.page(1) + 100, kPage}).ok());  // part of two pages
  for (const size_t number : {0, 1, 2, 3}) {
    EXPECT_EQ(CanSandboxRead(pages.page(number)), number == 0 || number == 3) << number;
    *pages.page(number) = std::byte{1};
  }
}

TEST(DontForkTest, RefusesUnmappedMemory) {
  std::byte* gone = nullptr;
  {
    SharedPages pages(1);
    gone = pages.page(0);
  }
  EXPECT_FALSE(DontFork({gone, kPage}).ok());
}

#if __has_include(<libxenvchan.h>)
// A small ring is in the page that both sides share, behind their indices; a large one has pages of
// its own.
TEST(DontForkTest, ChildProcessDoesNotInheritRings) {
  SharedPages page(2);
  SharedPages large(3);
  libxenvchan channel{};
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as a guest's page is mapped
  channel.ring = reinterpret_cast<vchan_interface*>(page.page(0));
  channel.read.buffer = large.page(0);
  channel.read.order = 13;
  channel.write.buffer = page.page(0) + 1024;
  channel.write.order = 10;
  ASSERT_TRUE(DontForkRings(channel).ok());
  EXPECT_FALSE(CanSandboxRead(page.page(0)));
  EXPECT_FALSE(CanSandboxRead(large.page(0)));
  EXPECT_FALSE(CanSandboxRead(large.page(1)));
  EXPECT_TRUE(CanSandboxRead(page.page(1)));
  EXPECT_TRUE(CanSandboxRead(large.page(2)));
}
#endif

}  // namespace
}  // namespace xenoscope::sampler
