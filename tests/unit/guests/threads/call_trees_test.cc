// Calls of functions as a kernel's events say them: events in, trees out.
#include "guests/threads/call_trees.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace xenoscope::guests {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr auto kInGuest = static_cast<size_t>(ThreadState::kGuest);

// A thread that runs all the time, so that its time is the host's.
class CalledTrees {
 public:
  CalledTrees& Enter(uint64_t at, Address function, uint64_t depth, size_t thread = 0) {
    const StateTimes so_far = SoFar(at);
    trees_.Enter(function, depth, {thread, Tsc{at}, losses_, so_far});
    return *this;
  }
  CalledTrees& Return(uint64_t at, Address function, uint64_t depth, size_t thread = 0) {
    const StateTimes so_far = SoFar(at);
    trees_.Return(function, depth, {thread, Tsc{at}, losses_, so_far});
    return *this;
  }
  CalledTrees& Count(Address function, Address from) {
    trees_.Count(function, from, {0, Tsc{}, losses_, {}});
    return *this;
  }
  CalledTrees& Lose() {
    ++losses_;
    return *this;
  }
  CallTrees& trees() { return trees_; }

  // "part thread: path calls n cut n total n self n longest n", a line a node.
  std::vector<std::string> Lines() {
    trees_.Finish();
    EXPECT_TRUE(trees_.Check().ok()) << trees_.Check();
    std::vector<std::string> paths;
    std::vector<std::string> lines;
    for (const CallNode& node : trees_.nodes()) {
      if (node.caller == CallNode::kNone) {
        paths.emplace_back(fmt::format("{} {}:", node.part, node.thread));
        continue;
      }
      paths.push_back(fmt::format("{} {:x}", paths[node.caller], node.function));
      lines.push_back(fmt::format("{} calls {} cut {} total {} self {} longest {}", paths.back(),
                                  node.calls + node.counted, node.cut, Sum(node.total),
                                  Sum(node.self), node.longest));
    }
    return lines;
  }

 private:
  static StateTimes SoFar(uint64_t at) {
    StateTimes times{};
    times[kInGuest] = at;
    return times;
  }
  CallTrees trees_;
  uint64_t losses_ = 0;
};

TEST(CallTrees, CallsNestByDepth) {
  CalledTrees calls;
  calls.Enter(100, 0xa, 0)
      .Enter(110, 0xb, 1)
      .Return(130, 0xb, 1)
      .Enter(140, 0xb, 1)
      .Enter(141, 0xc, 2)
      .Return(145, 0xc, 2)
      .Return(190, 0xb, 1)
      .Return(200, 0xa, 0)
      .Enter(300, 0xb, 0)
      .Return(310, 0xb, 0);
  EXPECT_THAT(calls.Lines(), ElementsAre("0 0: a calls 1 cut 0 total 100 self 30 longest 100",
                                         "0 0: a b calls 2 cut 0 total 70 self 66 longest 50",
                                         "0 0: a b c calls 1 cut 0 total 4 self 4 longest 4",
                                         "0 0: b calls 1 cut 0 total 10 self 10 longest 10"));
}

TEST(CallTrees, ThreadsHaveTreesOfTheirOwn) {
  CalledTrees calls;
  calls.Enter(100, 0xa, 0, 0).Enter(110, 0xb, 0, 1).Return(120, 0xa, 0, 0).Return(150, 0xb, 0, 1);
  EXPECT_THAT(calls.Lines(), ElementsAre("0 0: a calls 1 cut 0 total 20 self 20 longest 20",
                                         "0 1: b calls 1 cut 0 total 40 self 40 longest 40"));
}

TEST(CallTrees, OfACutCallOnlyTheCallsWithinHaveTime) {
  CalledTrees calls;
  calls.Enter(100, 0xa, 0)
      .Enter(110, 0xb, 1)
      .Return(130, 0xb, 1)
      .Enter(140, 0xc, 1)  // neither this one returns, nor a
      .Enter(200, 0xa, 0)
      .Return(210, 0xa, 0);
  EXPECT_THAT(calls.Lines(), ElementsAre("0 0: a calls 1 cut 1 total 30 self 10 longest 10",
                                         "0 0: a b calls 1 cut 0 total 20 self 20 longest 20",
                                         "0 0: a c calls 0 cut 1 total 0 self 0 longest 0"));
}

TEST(CallTrees, ALossCutsWhatIsOpen) {
  CalledTrees calls;
  calls.Enter(100, 0xa, 0).Enter(110, 0xb, 1).Lose().Return(130, 0xb, 1).Return(140, 0xa, 0);
  // Both begins and both ends are known, but not whether they belong together.
  EXPECT_THAT(calls.Lines(), ElementsAre("0 0: a calls 0 cut 1 total 0 self 0 longest 0",
                                         "0 0: a b calls 0 cut 1 total 0 self 0 longest 0",
                                         "0 0: 0 calls 0 cut 0 total 0 self 0 longest 0",
                                         "0 0: 0 b calls 0 cut 1 total 0 self 0 longest 0",
                                         "0 0: 0 a calls 0 cut 1 total 0 self 0 longest 0"));
}

TEST(CallTrees, CallersBeforeTheFirstEventAreNotKnown) {
  CalledTrees calls;
  calls.Enter(100, 0xb, 3)
      .Return(110, 0xb, 3)
      .Enter(120, 0xc, 3)
      .Return(125, 0xc, 3)
      .Return(130, 0xa, 2);
  EXPECT_THAT(calls.Lines(), ElementsAre("0 0: 0 calls 0 cut 0 total 15 self 0 longest 0",
                                         "0 0: 0 b calls 1 cut 0 total 10 self 10 longest 10",
                                         "0 0: 0 c calls 1 cut 0 total 5 self 5 longest 5",
                                         "0 0: 0 a calls 0 cut 1 total 0 self 0 longest 0"));
}

TEST(CallTrees, ReturnsOfOtherFunctionsEndNothingWell) {
  CalledTrees calls;
  calls.Enter(100, 0xa, 0).Enter(110, 0xb, 1).Return(120, 0xc, 1).Return(130, 0xa, 0);
  EXPECT_THAT(calls.Lines(), ElementsAre("0 0: a calls 1 cut 0 total 30 self 30 longest 30",
                                         "0 0: a b calls 0 cut 1 total 0 self 0 longest 0",
                                         "0 0: a c calls 0 cut 1 total 0 self 0 longest 0"));
}

TEST(CallTrees, AJumpInDepthIsWithinTheNextCallerThatIsKnown) {
  CalledTrees calls;
  calls.Enter(100, 0xa, 0).Enter(110, 0xb, 7).Return(120, 0xb, 7).Return(130, 0xa, 0);
  EXPECT_THAT(calls.Lines(), ElementsAre("0 0: a calls 1 cut 0 total 30 self 20 longest 30",
                                         "0 0: a b calls 1 cut 0 total 10 self 10 longest 10"));
}

TEST(CallTrees, TimesThatGoBackCutTheCall) {
  CalledTrees calls;
  calls.Enter(100, 0xa, 0).Return(90, 0xa, 0);
  EXPECT_THAT(calls.Lines(), ElementsAre("0 0: a calls 0 cut 1 total 0 self 0 longest 0"));
}

TEST(CallTrees, DeepRecursionIsBounded) {
  constexpr uint64_t kDeep = 10'000;
  CalledTrees calls;
  for (uint64_t depth = 0; depth < kDeep; ++depth) calls.Enter(depth, 0xa, depth);
  for (uint64_t depth = kDeep; depth-- > 0;) calls.Return(2 * kDeep - depth, 0xa, depth);
  const std::vector<std::string> lines = calls.Lines();
  EXPECT_EQ(lines.size(), CallTrees::kMaxDepth);
  EXPECT_EQ(lines[0], "0 0: a calls 1 cut 0 total 20000 self 2 longest 20000");
  EXPECT_EQ(calls.trees().left_out(), kDeep - CallTrees::kMaxDepth);
}

TEST(CallTrees, ThereIsRoomForSoManyNodes) {
  CalledTrees calls;
  for (uint64_t i = 1; i <= CallTrees::kMaxNodes + 5; ++i) {
    calls.Enter(10 * i, i, 0).Enter(10 * i + 1, 0xffff'ffff, 1);
    calls.Return(10 * i + 2, 0xffff'ffff, 1).Return(10 * i + 5, i, 0);
  }
  EXPECT_EQ(calls.trees().nodes().size(), CallTrees::kMaxNodes);
  EXPECT_GT(calls.trees().left_out(), CallTrees::kMaxNodes);
  calls.trees().Finish();
  EXPECT_TRUE(calls.trees().Check().ok());
}

TEST(CallTrees, APartHasTheCallsWhoseOutermostOneBeginsInIt) {
  CalledTrees calls;
  calls.trees().SetParts({Tsc{0}, Tsc{100}, Tsc{200}});
  calls.Enter(90, 0xa, 0).Enter(110, 0xb, 1).Return(120, 0xb, 1).Return(130, 0xa, 0);
  calls.Enter(250, 0xa, 0).Return(260, 0xa, 0);
  EXPECT_THAT(calls.Lines(), ElementsAre("0 0: a calls 1 cut 0 total 40 self 30 longest 40",
                                         "0 0: a b calls 1 cut 0 total 10 self 10 longest 10",
                                         "2 0: a calls 1 cut 0 total 10 self 10 longest 10"));
}

TEST(CallTrees, CallsWithoutEndsAreCounted) {
  CalledTrees calls;
  calls.Count(0xa, 0x10).Count(0xa, 0x10).Count(0xa, 0x20);
  EXPECT_THAT(calls.Lines(), ElementsAre("0 0: 10 calls 0 cut 0 total 0 self 0 longest 0",
                                         "0 0: 10 a calls 2 cut 0 total 0 self 0 longest 0",
                                         "0 0: 20 calls 0 cut 0 total 0 self 0 longest 0",
                                         "0 0: 20 a calls 1 cut 0 total 0 self 0 longest 0"));
}

TEST(CallTrees, NothingIsKnownOfNoEvents) { EXPECT_THAT(CalledTrees().Lines(), IsEmpty()); }

}  // namespace
}  // namespace xenoscope::guests
