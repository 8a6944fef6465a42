// Chains are those that elfutils' libdwfl finds for the same registers and stack, and those that
// the test knows of itself: through recursion, libraries, signals, exceptions and coroutines.
#include "symbolizer/unwind/unwinder.h"

#include <elfutils/libdwfl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ucontext.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "captured_stack.h"

namespace xenoscope::symbolizer {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

// What the loader mapped, before this test maps files to read them: libdwfl takes neighbours of one
// file for one module.
const std::string kMapsOfLoader = [] {
  std::ifstream file("/proc/self/maps");
  return std::string(std::istreambuf_iterator<char>(file), {});
}();

// libdwfl, with the captured registers and stack in the place of the process's.
class Oracle {
 public:
  explicit Oracle(const CapturedStack& stack) : stack_(stack) {
    static char* no_debug_files = nullptr;
    static const Dwfl_Callbacks callbacks = {.find_elf = dwfl_linux_proc_find_elf,
                                             .find_debuginfo = dwfl_standard_find_debuginfo,
                                             .section_address = nullptr,
                                             .debuginfo_path = &no_debug_files};
    dwfl_ = dwfl_begin(&callbacks);
    std::string text = kMapsOfLoader;
    std::FILE* const maps = fmemopen(text.data(), text.size(), "r");
    EXPECT_EQ(dwfl_linux_proc_maps_report(dwfl_, maps), 0) << dwfl_errmsg(-1);
    std::fclose(maps);
    dwfl_report_end(dwfl_, nullptr, nullptr);
  }
  Oracle(const Oracle&) = delete;
  Oracle& operator=(const Oracle&) = delete;
  ~Oracle() { dwfl_end(dwfl_); }

  // Addresses to return to, innermost first.
  std::vector<Address> Callers() {
    static const Dwfl_Thread_Callbacks callbacks = {.next_thread = NextThread,
                                                    .get_thread = nullptr,
                                                    .memory_read = Read,
                                                    .set_initial_registers = SetRegisters,
                                                    .detach = nullptr,
                                                    .thread_detach = nullptr};
    EXPECT_TRUE(dwfl_attach_state(dwfl_, nullptr, getpid(), &callbacks, this)) << dwfl_errmsg(-1);
    dwfl_getthread_frames(dwfl_, getpid(), Frame, this);
    if (!callers_.empty()) callers_.erase(callers_.begin());  // the function itself
    return callers_;
  }

 private:
  static pid_t NextThread(Dwfl* /*dwfl*/, void* self, void** thread) {
    if (*thread != nullptr) return 0;
    *thread = self;
    return getpid();
  }
  static bool Read(Dwfl* /*dwfl*/, Dwarf_Addr at, Dwarf_Word* value, void* self) {
    const auto word = static_cast<Oracle*>(self)->stack_.piece().Read<uint64_t>(at);
    *value = word.value_or(0);
    return word.has_value();
  }
  static bool SetRegisters(Dwfl_Thread* thread, void* self) {
    const UserRegisters& registers = static_cast<Oracle*>(self)->stack_.registers;
    dwfl_thread_state_register_pc(thread, registers[kRip]);
    return dwfl_thread_state_registers(thread, 0, kUserRegisters, registers.data());
  }
  static int Frame(Dwfl_Frame* frame, void* self) {
    Dwarf_Addr pc = 0;
    if (!dwfl_frame_pc(frame, &pc, nullptr)) return DWARF_CB_ABORT;
    static_cast<Oracle*>(self)->callers_.push_back(pc);
    return DWARF_CB_OK;
  }

  const CapturedStack& stack_;
  Dwfl* dwfl_;
  std::vector<Address> callers_;
};

struct Unwound {
  UnwoundChain chain;
  std::vector<Address> callers;
};

Unwound Unwind(const CapturedStack& stack) {
  static OwnCode code;
  static Unwinder unwinder(code);
  Unwound unwound;
  unwound.chain =
      unwinder.Unwind(AddressSpaceId{1}, stack.registers, stack.piece(), unwound.callers);
  return unwound;
}

// The chain is the oracle's, where an interrupted instruction has its address plus 1.
void ExpectAsOracle(const CapturedStack& stack) {
  const Unwound found = Unwind(stack);
  const std::vector<Address> expected = Oracle(stack).Callers();
  EXPECT_EQ(found.chain.end, ChainEnd::kOutermost);
  EXPECT_EQ(found.chain.by_frame_pointer, 0U);
  ASSERT_THAT(found.callers, SizeIs(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(found.callers[i] == expected[i] || found.callers[i] == expected[i] + 1)
        << "caller " << i;
  }
}

[[gnu::noinline]] void Recurse(int depth, CapturedStack& out) {
  if (depth == 0) {
    Capture(out);
  } else {
    Recurse(depth - 1, out);
  }
  asm volatile("" ::: "memory");  // no tail call
}

TEST(Unwinder, FollowsRecursion) {
  CapturedStack stack;
  Recurse(100, stack);
  ExpectAsOracle(stack);
  const std::vector<Address> callers = Unwind(stack).callers;
  std::map<Address, int> count;
  for (const Address caller : callers) ++count[caller];
  // The outermost calls may be those of a clone that the compiler made.
  EXPECT_GE(std::ranges::max_element(count, {}, [](const auto& of) { return of.second; })->second,
            98);
}

TEST(Unwinder, FollowsCallsByLibraries) {
  static CapturedStack stack;
  std::vector<int> numbers = {2, 1};
  qsort(numbers.data(), numbers.size(), sizeof(int), [](const void* /*a*/, const void* /*b*/) {
    Capture(stack);
    return 0;
  });
  ExpectAsOracle(stack);
}

TEST(Unwinder, FollowsSignalsToTheInterruptedInstruction) {
  static CapturedStack stack;
  static Address interrupted = 0;
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = [](int /*signal*/, siginfo_t* /*info*/, void* context) {
    interrupted =
        static_cast<Address>(static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP]);
    Capture(stack);
  };
  struct sigaction before {};
  sigaction(SIGUSR1, &action, &before);
  raise(SIGUSR1);
  sigaction(SIGUSR1, &before, nullptr);
  ExpectAsOracle(stack);
  EXPECT_THAT(Unwind(stack).callers, testing::Contains(interrupted + 1));
}

// Captures when an exception leaves its block.
struct OnDestruction {
  CapturedStack& out;
  [[gnu::noinline]] ~OnDestruction() { Capture(out); }
};

[[gnu::noinline]] void Throw(CapturedStack& out) {
  [[maybe_unused]] const OnDestruction captured{out};
  throw 1;
}

TEST(Unwinder, FollowsDestructorsThatExceptionsRun) {
  CapturedStack stack;
  try {
    Throw(stack);
  } catch (int) {
  }
  ExpectAsOracle(stack);
}

TEST(Unwinder, EndsWhereACoroutineOfItsOwnStackBegan) {
  static CapturedStack stack;
  static ucontext_t outer;
  static ucontext_t inner;
  std::vector<char> memory(size_t{1} << 18);
  getcontext(&inner);
  inner.uc_stack.ss_sp = memory.data();
  inner.uc_stack.ss_size = memory.size();
  inner.uc_link = &outer;
  const auto coroutine = +[] {
    Capture(stack, /*most=*/1 << 16);
    asm volatile("" ::: "memory");  // no tail call
  };
  makecontext(&inner, coroutine, 0);
  swapcontext(&outer, &inner);
  const Unwound found = Unwind(stack);
  // The coroutine, and the C library's __start_context. What is above that is no frame: its own
  // rules lead nowhere.
  EXPECT_EQ(found.chain.end, ChainEnd::kBadRule);
  EXPECT_THAT(found.callers, SizeIs(2));
}

TEST(Unwinder, SaysThatTheStackWasCut) {
  CapturedStack stack;
  Recurse(100, stack);
  const std::vector<Address> whole = Unwind(stack).callers;
  stack.bytes.resize(1024);
  const Unwound cut = Unwind(stack);
  EXPECT_EQ(cut.chain.end, ChainEnd::kStackCut);
  ASSERT_LT(cut.callers.size(), whole.size());
  EXPECT_THAT(cut.callers, SizeIs(testing::Gt(5U)));
  EXPECT_TRUE(std::ranges::equal(cut.callers, std::span(whole).first(cut.callers.size())));
}

// Code at [0x1000, 0x2000) without a table, such as that of a JIT compiler.
class CodeWithoutTable final : public UnwindCodeSource {
 public:
  UnwindCode CodeAt(AddressSpaceId /*space*/, Address address) override {
    return {.mapped = address >= 0x1000 && address < 0x2000, .file_is_missing = file_is_missing};
  }
  bool file_is_missing = false;
};

class UnwinderWithoutTables : public testing::Test {
 protected:
  // A stack of these words, at 0x8000.
  UnwoundChain Unwind(const std::vector<uint64_t>& words, Address rip, Address rbp) {
    UserRegisters registers{};
    registers[kRip] = rip;
    registers[kRsp] = 0x8000;
    registers[kRbp] = rbp;
    callers_.clear();
    return unwinder_.Unwind({}, registers, {0x8000, std::as_bytes(std::span(words))}, callers_);
  }
  CodeWithoutTable code_;
  Unwinder unwinder_{code_};
  std::vector<Address> callers_;
};

TEST_F(UnwinderWithoutTables, FramePointersAreFollowed) {
  const auto chain = Unwind({0, 0x8018, 0x1100, 0x8028, 0x1200, 0x8028, 0}, 0x1000, 0x8008);
  EXPECT_EQ(chain.end, ChainEnd::kOutermost) << "its return address is 0";
  EXPECT_EQ(chain.by_frame_pointer, 2U);
  EXPECT_THAT(callers_, ElementsAre(0x1100, 0x1200));
}

// Where the file that may have a table was not found, 0 may be any value.
TEST_F(UnwinderWithoutTables, OutermostFrameOfMissingFileIsNotKnown) {
  code_.file_is_missing = true;
  const auto chain = Unwind({0, 0x8018, 0x1100, 0x8028, 0}, 0x1000, 0x8008);
  EXPECT_EQ(chain.end, ChainEnd::kNoTable);
  EXPECT_THAT(callers_, ElementsAre(0x1100));
}

TEST_F(UnwinderWithoutTables, OtherCodeHasNoCallers) {
  EXPECT_EQ(Unwind({0, 0}, 0x1000, 0x7).end, ChainEnd::kNoTable) << "no frame pointer";
  EXPECT_EQ(Unwind({0, 0}, 0x3000, 0x8000).end, ChainEnd::kNoTable) << "no code";
  EXPECT_EQ(Unwind({0x8010, 0x5555}, 0x1000, 0x8000).end, ChainEnd::kNoTable) << "leads nowhere";
  EXPECT_THAT(callers_, IsEmpty());
}

// The loader's _start has no table: what is above it is what the kernel gives a new process.
TEST_F(UnwinderWithoutTables, EntryOfProcessIsOutermost) {
  EXPECT_EQ(Unwind({2, 0x7001, 0x7002, 0, 0x7003}, 0x1000, 0).end, ChainEnd::kOutermost);
  EXPECT_THAT(callers_, IsEmpty());
  EXPECT_EQ(Unwind({2, 0x7001, 0x7002, 0x7003}, 0x1000, 0).end, ChainEnd::kNoTable);
  EXPECT_EQ(Unwind({2, 0x7001}, 0x1000, 0).end, ChainEnd::kNoTable) << "it is cut";
  EXPECT_EQ(Unwind({0, 0, 0}, 0x1000, 0).end, ChainEnd::kNoTable) << "no arguments";
  EXPECT_EQ(Unwind({~uint64_t{0}, 1, 0}, 0x1000, 0).end, ChainEnd::kNoTable) << "too many";
}

TEST_F(UnwinderWithoutTables, FramesThatDoNotGoUpEndTheChain) {
  // The frame points at itself.
  EXPECT_EQ(Unwind({0x8000, 0x1100, 0, 0}, 0x1000, 0x8000).end, ChainEnd::kNoTable);
  EXPECT_THAT(callers_, ElementsAre(0x1100));
}

// A stack at 0x8000 that was entered from one at 0xa000.
TEST_F(UnwinderWithoutTables, ChainsLeaveAStackForTheOneFromWhichItWasEntered) {
  const std::vector<uint64_t> inner = {0xa000, 0x1100};
  const std::vector<uint64_t> outer = {0xa010, 0x1200, 0xa020, 0x1300, 0xa030, 0};
  const StackPiece outer_piece{0xa000, std::as_bytes(std::span(outer))};
  UserRegisters registers{};
  registers[kRip] = 0x1000;
  registers[kRsp] = registers[kRbp] = 0x8000;
  const auto chain = unwinder_.Unwind(
      {}, registers, {0x8000, std::as_bytes(std::span(inner)), {&outer_piece, 1}}, callers_);
  EXPECT_EQ(chain.end, ChainEnd::kOutermost);
  EXPECT_THAT(callers_, ElementsAre(0x1100, 0x1200, 0x1300));
}

// Frames of a guest can lead from stack to stack and back.
TEST_F(UnwinderWithoutTables, CirclesOfStacksEnd) {
  const std::vector<uint64_t> inner = {0x6000, 0x1100};
  const std::vector<uint64_t> outer = {0x8000, 0x1200};
  const std::array<StackPiece, 2> pieces = {StackPiece{0x6000, std::as_bytes(std::span(outer))},
                                            StackPiece{0x8000, std::as_bytes(std::span(inner))}};
  UserRegisters registers{};
  registers[kRip] = 0x1000;
  registers[kRsp] = registers[kRbp] = 0x8000;
  const auto chain =
      unwinder_.Unwind({}, registers, {0x8000, std::as_bytes(std::span(inner)), pieces}, callers_);
  EXPECT_NE(chain.end, ChainEnd::kOutermost);
  EXPECT_LE(callers_.size(), Unwinder::kMaxCallers);
}

}  // namespace
}  // namespace xenoscope::symbolizer
