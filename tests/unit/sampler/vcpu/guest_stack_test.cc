// Call chains of guests, followed through simulated page tables and stacks.
#include "sampler/vcpu/guest_stack.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <utility>
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
    return GuestStack(frames_).Unwind(kGuest, context, {}, callers_);
  }

  StackPieces Read(const VcpuContext& context) {
    StackPieces stacks;
    stacks.words = {1};
    stacks.pieces = {{1, 0, 1}};
    GuestStack stack(frames_);
    stack.Read(kGuest, context, stacks);
    stack.ReadOuter(stacks);
    return stacks;
  }
  static std::vector<Address> BeginsOf(const StackPieces& stacks) {
    std::vector<Address> begins;
    for (const StackPieces::Piece& piece : stacks.pieces) begins.push_back(piece.begin);
    return begins;
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
    EXPECT_TRUE(GuestStack(frames).Unwind(kGuest, Context(), {}, callers_)) << level;
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
  const StackPieces stacks = Read(context);
  EXPECT_FALSE(GuestStack(frames_).Unwind(kGuest, context, stacks, callers_));
  EXPECT_THAT(callers_, ElementsAre(kKernel + 0x10));
  // A frame that is not on the stacks is none, and nothing is mapped to look at it.
  const uint64_t asked = ram_.asked;
  context.frame = 0xffff'8880'1234'5678;
  ram_.Push(context.frame, 0, kKernel + 0x10);
  EXPECT_FALSE(GuestStack(frames_).Unwind(kGuest, context, stacks, callers_));
  EXPECT_THAT(callers_, IsEmpty());
  EXPECT_EQ(ram_.asked, asked);
}

TEST_F(GuestStackTest, KernelStackIsReadInNewAddressSpacesWithoutMaps) {
  constexpr Address kKernelStack = 0xffff'c900'0000'3000;
  ram_.Write(kKernelStack, 5);
  VcpuContext context = Context();
  context.mode = Mode::kKernel;
  context.stack = kKernelStack;
  EXPECT_THAT(Read(context).words, SizeIs(512));
  const uint64_t asked = ram_.asked;
  context.page_tables = uint64_t{0x999} << 12;  // of another process, whose table is not mapped
  EXPECT_THAT(Read(context).words, SizeIs(512));
  EXPECT_EQ(ram_.asked, asked);
  // The top table of user mode may not have the kernel's stacks.
  context.mode = Mode::kUser;
  EXPECT_TRUE(Read(context).empty());
  // The entry is read again after a period.
  context.mode = Mode::kKernel;
  frames_.Expire(MappedFrames::Clock::now());
  EXPECT_TRUE(Read(context).empty());
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
    EXPECT_FALSE(GuestStack(frames).Unwind(kGuest, Context(), {}, callers_)) << level;
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
    EXPECT_FALSE(GuestStack(frames).Unwind(kGuest, Context(), {}, callers_)) << level;
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
  const StackPieces stacks = Read(context);
  ASSERT_THAT(BeginsOf(stacks), ElementsAre(kStack + 0xff0));
  const auto piece = stacks.WordsOf(stacks.pieces[0]);
  ASSERT_THAT(piece, SizeIs(2 + 512));
  EXPECT_EQ(piece[0], 0xff0U);
  EXPECT_EQ(piece[1], 0xff8U);
  EXPECT_EQ(piece[2], 0x1000U);
  EXPECT_EQ(piece.back(), 0x1ff8U);
}

TEST_F(GuestStackTest, LimitsThePiece) {
  for (Address at = kStack; at < kStack + 0x8000; at += kFrameSize) ram_.Write(at, 1);
  EXPECT_THAT(Read(Context()).words, SizeIs(GuestStack::kMaxPieceBytes / 8));
}

TEST_F(GuestStackTest, ReadsNoPieceWhereThereIsNone) {
  EXPECT_TRUE(Read(Context()).empty()) << "nothing is mapped";
  ram_.Write(kStack, 1);
  VcpuContext context = Context();
  context.stack = kStack + 4;
  EXPECT_TRUE(Read(context).empty()) << "it is no stack pointer of compiled code";
  context.stack = 0xbfff'0000;
  ram_.Write(context.stack, 1);
  EXPECT_TRUE(Read(context).empty()) << "it is one of 32-bit code";
}

// The stacks of a kernel, each below a page that is not mapped.
class OuterStacksTest : public GuestStackTest {
 protected:
  static constexpr Address kException = 0xffff'fe00'0000'2000;
  static constexpr Address kInterrupt = 0xffff'c900'0001'4000;
  static constexpr Address kTask = 0xffff'c900'0010'3000;

  // Writes the last words of the stack in the page at `page`. Returns the address of their first.
  Address End(Address page, const std::vector<uint64_t>& words) {
    const Address first = page + kFrameSize - words.size() * sizeof(uint64_t);
    for (size_t i = 0; i < words.size(); ++i) ram_.Write(first + i * sizeof(uint64_t), words[i]);
    return first;
  }
  // What the processor pushes when it enters the kernel: instruction, code segment, flags, stack
  // and stack segment.
  static std::vector<uint64_t> Pushed(Address stack, bool user) {
    return {0x401000, user ? 0x33U : 0x10U, 0x246, stack, user ? 0x2bU : 0x18U};
  }
  std::vector<Address> BeginsFrom(Address stack) {
    VcpuContext context = Context();
    context.mode = Mode::kKernel;
    context.stack = stack;
    return BeginsOf(Read(context));
  }
};

TEST_F(OuterStacksTest, AreReadOutToTheUserStack) {
  ram_.Write(kStack, 1);
  const Address task = End(kTask, Pushed(kStack, /*user=*/true));
  const Address interrupt = End(kInterrupt, {1, 2, task - 0x20});
  const Address exception = End(kException, Pushed(interrupt, /*user=*/false));
  EXPECT_THAT(BeginsFrom(exception - 0x10),
              ElementsAre(exception - 0x10, interrupt, task - 0x20, kStack));
  EXPECT_THAT(BeginsFrom(interrupt), ElementsAre(interrupt, task - 0x20, kStack));
  EXPECT_THAT(BeginsFrom(task), ElementsAre(task, kStack));
}

TEST_F(OuterStacksTest, CanBeGivenUpAlone) {
  StackPieces stacks;
  stacks.words = {1, 2, 3};
  stacks.pieces = {{kInterrupt, 0, 2}, {kTask, 2, 1}};
  stacks.Keep(3);
  EXPECT_THAT(stacks.words, SizeIs(3));
  stacks.Keep(1);
  EXPECT_THAT(BeginsOf(stacks), ElementsAre(kInterrupt));
  EXPECT_THAT(stacks.words, ElementsAre(1, 2));
  stacks.Keep(0);
  EXPECT_TRUE(stacks.empty());
  EXPECT_THAT(stacks.words, IsEmpty());
}

TEST_F(OuterStacksTest, UserStackHasNoOuterOne) {
  End(kStack, {1, 2, kTask});  // a program can write what looks like the end of a kernel's stack
  ram_.Write(kTask, 1);
  EXPECT_THAT(BeginsFrom(kStack), ElementsAre(kStack));
}

TEST_F(OuterStacksTest, KernelThreadWasNotEnteredFromUserMode) {
  EXPECT_THAT(BeginsFrom(End(kTask, {7, 0, 0, 0, 0, 0})), SizeIs(1));
}

TEST_F(OuterStacksTest, WhatIsNoStackEndsThem) {
  const Address task = End(kTask, {1, 2, 3, 4, 5, 6});
  for (const Address link :
       {Address{0}, kStack, task + 4, kInterrupt + 0xff8, Address{0xffff'c900'dead'0000},
        Address{0x7fff'ffff'ffff'fff8}, ~Address{7}}) {
    const Address interrupt = End(kInterrupt, {1, 2, link});
    EXPECT_THAT(BeginsFrom(interrupt), ElementsAre(interrupt)) << std::hex << link;
  }
  // A 32-bit program's, an unaligned one, and segments that are none.
  for (const auto& [stack, segment] : {std::pair<Address, uint64_t>{0xbfff'0000, 0x2b},
                                       {kStack + 1, 0x2b},
                                       {kStack, 0},
                                       {kStack, 0x1'0000}}) {
    ram_.Write(0xbfff'0000, 1);
    ram_.Write(kStack, 1);
    const Address first = End(kTask, {0x401000, 0x33, 0x246, stack, segment});
    EXPECT_THAT(BeginsFrom(first), ElementsAre(first)) << std::hex << stack << " " << segment;
  }
}

// A guest can make each stack lead to the next one, or in a circle.
TEST_F(OuterStacksTest, AreLimited) {
  for (int i = 0; i < 8; ++i) {
    const Address page = kTask + i * Address{0x10000};
    End(page, {1, 2, page + 0x10000 + kFrameSize - 0x18});
  }
  EXPECT_THAT(BeginsFrom(kTask + kFrameSize - 0x18), SizeIs(GuestStack::kMaxPieces));
  const Address task = End(kTask, {1, 2, kInterrupt + kFrameSize - 0x18});
  const Address interrupt = End(kInterrupt, {1, 2, task});
  EXPECT_THAT(BeginsFrom(interrupt), ElementsAre(interrupt, task));
}

TEST_F(GuestStackTest, CachesMappingsForLimitedTime) {
  ram_.Push(kStack + 0x20, 0, 0x402000);
  MappedFrames::Clock::time_point now = MappedFrames::Clock::now();
  frames_.Expire(now);
  // Four levels, the stack, and three levels that lead to the caller.
  for (uint64_t period = 0; period < MappedFrames::kMaxAge; ++period) {
    EXPECT_TRUE(Unwind());
    EXPECT_EQ(ram_.asked, 8U) << period;
    EXPECT_FALSE(frames_.Expire(now + MappedFrames::kPeriod / 2));
    EXPECT_EQ(ram_.mapped, 8);
    now += MappedFrames::kPeriod;
    EXPECT_TRUE(frames_.Expire(now));
  }
  EXPECT_EQ(ram_.mapped, 0);
  EXPECT_TRUE(Unwind());
  EXPECT_EQ(ram_.asked, 16U);
  for (uint64_t period = 0; period <= MappedFrames::kMaxUnused; ++period) {
    EXPECT_EQ(ram_.mapped, 8) << period;
    now += MappedFrames::kPeriod;
    frames_.Expire(now);
  }
  EXPECT_EQ(ram_.mapped, 0) << "it was not used";
}

TEST_F(GuestStackTest, DropsMappingsOfOneDomain) {
  ram_.Push(kStack + 0x20, 0, 0x402000);
  EXPECT_TRUE(Unwind());
  frames_.At(DomainId{4}, FakeRam::kRoot);
  frames_.Drop(kGuest);
  EXPECT_EQ(ram_.mapped, 1);
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
