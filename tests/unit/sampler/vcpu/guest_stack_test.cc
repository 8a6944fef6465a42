// Call chains of guests, followed through simulated page tables and stacks.
#include "sampler/vcpu/guest_stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "tests/unit/sampler/fake_memory.h"

namespace xenoscope::sampler {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr DomainId kGuest{3};
constexpr Address kStack = 0x7ffc'0000'1000;

class GuestStackTest : public ::testing::Test {
 protected:
  // Returns the registers of a program at 0x401000, with a stack as deep as is written.
  static VcpuContext Context() {
    VcpuContext context;
    context.address = 0x401000;
    context.mode = Mode::kUser;
    context.stack = kStack;
    context.frame = kStack + 0x20;
    context.page_tables = FakeRam::kRoot << 12;
    return context;
  }
  bool Unwind(const VcpuContext& context = Context()) {
    return GuestStack(frames_).Unwind(kGuest, context, callers_);
  }

  FakeRam ram_;
  MappedFrames frames_{std::make_unique<FakeMemory>(ram_)};
  std::vector<Address> callers_;
};

TEST_F(GuestStackTest, ListsCallersFromInnermost) {
  ram_.Push(kStack + 0x20, kStack + 0x60, 0x402000);
  ram_.Push(kStack + 0x60, kStack + 0x90, 0x403000);
  ram_.Push(kStack + 0x90, 0, 0x404000);
  EXPECT_TRUE(Unwind());
  EXPECT_THAT(callers_, ElementsAre(0x402000, 0x403000, 0x404000));
}

TEST_F(GuestStackTest, EndsWithoutFrameOrCaller) {
  VcpuContext context = Context();
  context.frame = 0;
  EXPECT_TRUE(Unwind(context));
  EXPECT_THAT(callers_, IsEmpty());
  ram_.Push(kStack + 0x20, kStack + 0x60, 0);
  EXPECT_TRUE(Unwind());
  EXPECT_THAT(callers_, IsEmpty());
}

TEST_F(GuestStackTest, ReadsFrameAcrossTwoPages) {
  VcpuContext context = Context();
  context.frame = kStack + 0xff8;
  ram_.Push(context.frame, 0, 0x402000);
  EXPECT_TRUE(Unwind(context));
  EXPECT_THAT(callers_, ElementsAre(0x402000));
}

TEST_F(GuestStackTest, ReadsLargePages) {
  for (const int level : {2, 3}) {
    FakeRam ram;
    MappedFrames frames(std::make_unique<FakeMemory>(ram));
    constexpr uint64_t kLarge = 1U << 7;
    constexpr uint64_t kSomeBit = 1U << 12;  // that is no part of a large page's frame
    // The frame that a large page at 0x40000000 has for the stack's page.
    const uint64_t pages = uint64_t{1} << 9 * (level - 1);
    const uint64_t frame = 0x40000 + (kStack >> 12) % pages;
    ram.Entry(kStack, level) = 0x4000'0000 | kSomeBit | kLarge | FakeRam::kPresent;
    ram.frames[frame][0x20 / 8] = 0;
    ram.frames[frame][0x28 / 8] = 0x402000;
    ram.Code(0x402000);
    EXPECT_TRUE(GuestStack(frames).Unwind(kGuest, Context(), callers_)) << level;
    EXPECT_THAT(callers_, ElementsAre(0x402000)) << level;
  }
}

TEST_F(GuestStackTest, WalksFiveLevelPageTables) {
  ram_.Push(kStack + 0x20, 0, 0x402000, /*levels=*/5);
  VcpuContext context = Context();
  context.five_levels = true;
  EXPECT_TRUE(Unwind(context));
  EXPECT_THAT(callers_, ElementsAre(0x402000));
  EXPECT_FALSE(Unwind());
}

TEST_F(GuestStackTest, KernelCallersAreInUpperHalf) {
  constexpr Address kKernel = 0xffff'ffff'8100'0000;
  constexpr Address kKernelStack = 0xffff'c900'0000'3000;
  ram_.Push(kKernelStack, kKernelStack + 0x40, kKernel + 0x10);
  ram_.Push(kKernelStack + 0x40, kKernelStack + 0x80, 0x401000);  // a program's
  VcpuContext context = Context();
  context.address = kKernel;
  context.mode = Mode::kKernel;
  context.stack = context.frame = kKernelStack;
  EXPECT_FALSE(Unwind(context));
  EXPECT_THAT(callers_, ElementsAre(kKernel + 0x10));
}

TEST_F(GuestStackTest, InvalidFrameCutsTheChain) {
  // Below the one before; the same; beside a word; much too far.
  for (const Address next : {kStack, kStack + 0x20, kStack + 0x61, kStack + 0x20'0000}) {
    ram_.Push(kStack + 0x20, next, 0x402000);
    EXPECT_FALSE(Unwind()) << std::hex << next;
    EXPECT_THAT(callers_, ElementsAre(0x402000)) << std::hex << next;
  }
}

TEST_F(GuestStackTest, NoCallersWithoutFramePointer) {
  for (const Address frame : {Address{1}, kStack - 8, kStack + 0x21, ~Address{0}}) {
    VcpuContext context = Context();
    context.frame = frame;
    EXPECT_FALSE(Unwind(context)) << std::hex << frame;
    EXPECT_THAT(callers_, IsEmpty());
  }
}

TEST_F(GuestStackTest, ReturnAddressOutsideCodeCutsTheChain) {
  const Address data = kStack + 0x5000;
  ram_.Push(kStack + 0x20, kStack + 0x60, 0x402000);
  ram_.Write(kStack + 0x60, 0);
  ram_.Write(kStack + 0x68, data);
  EXPECT_FALSE(Unwind());  // not there at all
  EXPECT_THAT(callers_, ElementsAre(0x402000));
  ram_.Write(data, 1);
  EXPECT_FALSE(Unwind());  // there, and not executable
  EXPECT_THAT(callers_, ElementsAre(0x402000));
  ram_.Code(data);
  EXPECT_TRUE(Unwind());
  EXPECT_THAT(callers_, ElementsAre(0x402000, data));
  ram_.Entry(data, 3) |= FakeRam::kNoExecute;  // whatever is below it
  EXPECT_FALSE(Unwind());
}

TEST_F(GuestStackTest, UnmappedPageCutsTheChain) {
  EXPECT_FALSE(Unwind());  // nothing below the root
  for (const int level : {4, 3, 2, 1}) {
    FakeRam ram;
    MappedFrames frames(std::make_unique<FakeMemory>(ram));
    ram.Push(kStack + 0x20, 0, 0x402000);
    ram.Entry(kStack, level) &= ~FakeRam::kPresent;
    EXPECT_FALSE(GuestStack(frames).Unwind(kGuest, Context(), callers_)) << level;
  }
}

TEST_F(GuestStackTest, FailedMappingCutsTheChain) {
  VcpuContext context = Context();
  context.page_tables = 0x0fff'ffff'ffff'f000;
  EXPECT_FALSE(Unwind(context));
  for (const int level : {4, 3, 2, 1}) {
    FakeRam ram;
    MappedFrames frames(std::make_unique<FakeMemory>(ram));
    ram.Push(kStack + 0x20, 0, 0x402000);
    ram.Entry(kStack, level) = uint64_t{0xdead'beef} << 12 | FakeRam::kPresent;
    EXPECT_FALSE(GuestStack(frames).Unwind(kGuest, Context(), callers_)) << level;
    EXPECT_THAT(callers_, IsEmpty());
  }
}

TEST_F(GuestStackTest, DoesNotUnwind32BitCode) {
  VcpuContext context = Context();
  context.stack = 0xbfff'0000;
  context.frame = 0xbfff'0020;
  ram_.Push(context.frame, 0, 0x402000);
  EXPECT_FALSE(Unwind(context));
  EXPECT_THAT(callers_, IsEmpty());
}

TEST_F(GuestStackTest, LimitsDepth) {
  for (Address at = kStack + 0x20; at < kStack + 0x4000; at += 0x10) {
    ram_.Push(at, at + 0x10, 0x402000);
  }
  EXPECT_FALSE(Unwind());
  EXPECT_THAT(callers_, SizeIs(GuestStack::kMaxCallers));
}

TEST_F(GuestStackTest, LimitsMappedPagesOfAChain) {
  for (int i = 0; i < 100; ++i) {
    const Address at = kStack + 0x20 + i * Address{0x10000};
    ram_.Push(at, at + 0x10000, 0x402000);
  }
  EXPECT_FALSE(Unwind());
  EXPECT_LE(ram_.asked, GuestStack::kMaxMaps);
}

TEST_F(GuestStackTest, ReadsThePieceFromTheStackPointerToAnUnmappedPage) {
  VcpuContext context = Context();
  context.stack = kStack + 0xff0;
  for (const Address at : {0xff0, 0xff8, 0x1000, 0x1ff8}) ram_.Write(kStack + at, at);
  std::vector<uint64_t> piece;
  GuestStack(frames_).Read(kGuest, context, piece);
  ASSERT_THAT(piece, SizeIs(2 + 512));
  EXPECT_EQ(piece[0], 0xff0U);
  EXPECT_EQ(piece[1], 0xff8U);
  EXPECT_EQ(piece[2], 0x1000U);
  EXPECT_EQ(piece.back(), 0x1ff8U);
}

TEST_F(GuestStackTest, LimitsThePiece) {
  for (Address at = kStack; at < kStack + 0x8000; at += kFrameSize) ram_.Write(at, 1);
  std::vector<uint64_t> piece;
  GuestStack(frames_).Read(kGuest, Context(), piece);
  EXPECT_THAT(piece, SizeIs(GuestStack::kMaxPieceBytes / 8));
}

TEST_F(GuestStackTest, ReadsNoPieceWhereThereIsNone) {
  std::vector<uint64_t> piece = {1};
  GuestStack(frames_).Read(kGuest, Context(), piece);
  EXPECT_THAT(piece, IsEmpty()) << "nothing is mapped";
  ram_.Write(kStack, 1);
  VcpuContext context = Context();
  context.stack = kStack + 4;
  GuestStack(frames_).Read(kGuest, context, piece);
  EXPECT_THAT(piece, IsEmpty()) << "it is no stack pointer of compiled code";
}

TEST_F(GuestStackTest, CachesMappingsForLimitedTime) {
  using namespace std::chrono_literals;
  ram_.Push(kStack + 0x20, 0, 0x402000);
  const MappedFrames::Clock::time_point now = MappedFrames::Clock::now();
  frames_.Expire(now);
  EXPECT_TRUE(Unwind());
  EXPECT_EQ(ram_.asked, 8U);  // four levels, the stack, and three levels that lead to the caller
  frames_.Expire(now + 999ms);
  EXPECT_TRUE(Unwind());
  EXPECT_EQ(ram_.asked, 8U);
  EXPECT_EQ(ram_.mapped, 8);
  frames_.Expire(now + 1000ms);
  EXPECT_EQ(ram_.mapped, 0);
  EXPECT_TRUE(Unwind());
  EXPECT_EQ(ram_.asked, 16U);
}

TEST_F(GuestStackTest, CachedMappingsShowGuestWrites) {
  ram_.Push(kStack + 0x20, 0, 0x402000);
  EXPECT_TRUE(Unwind());
  ram_.Push(kStack + 0x20, 0, 0x403000);
  EXPECT_TRUE(Unwind());
  EXPECT_THAT(callers_, ElementsAre(0x403000));
}

TEST_F(GuestStackTest, LimitsCachedMappings) {
  for (uint64_t i = 0; i <= MappedFrames::kMaxFrames; ++i) {
    ram_.frames[0x10000 + i];
    frames_.At(kGuest, 0x10000 + i);
  }
  const MappedFrames::Clock::time_point begin{};
  frames_.Expire(begin);
  EXPECT_EQ(ram_.mapped, 0);
}

}  // namespace
}  // namespace xenoscope::sampler
