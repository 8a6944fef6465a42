#include "report/calls/calls_view.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "guests/threads/call_trees.h"
#include "report/calls/call_forest.h"
#include "report/table/table_csv.h"
#include "report/table/table_text.h"

namespace xenoscope::report {
namespace {

using guests::CallNode;
using guests::StateTimes;
using guests::ThreadState;

constexpr size_t kRoot = CallNode::kNone;

StateTimes Ran(Cycles guest, Cycles xen = 0) {
  StateTimes times{};
  times[static_cast<size_t>(ThreadState::kGuest)] = guest;
  times[static_cast<size_t>(ThreadState::kXen)] = xen;
  return times;
}

CallNode Node(size_t caller, Address function, uint64_t calls, StateTimes total, StateTimes self,
              uint32_t part = 0) {
  CallNode node;
  node.caller = caller;
  node.function = function;
  node.calls = calls;
  node.total = total;
  node.self = self;
  node.longest = guests::Sum(total);
  node.part = part;
  return node;
}

// "f1" is at 1 and 0x101: two calls of a function from different places.
std::string FunctionAt(Address address) { return fmt::format("f{}", address % 0x100); }

// Two threads call f1 and f2; in the second part f3 calls itself.
CallForest Forest() {
  std::vector<CallNode> nodes{
      Node(kRoot, 0, 0, Ran(60, 10), {}),        Node(0, 0x1, 2, Ran(60, 10), Ran(20)),
      Node(1, 0x2, 3, Ran(40, 10), Ran(40, 10)), Node(kRoot, 0, 0, Ran(7), {}),
      Node(3, 0x101, 1, Ran(7), Ran(7)),         Node(kRoot, 0, 0, Ran(9), {}, 1),
      Node(5, 0x3, 1, Ran(9), Ran(4), 1),        Node(6, 0x3, 1, Ran(5), Ran(5), 1),
      Node(kRoot, 0, 0, Ran(1), {}, 2),          Node(8, 0x4, 1, Ran(1), Ran(1), 2)};
  CallForest forest;
  forest.Add(nodes, FunctionAt, [](size_t /*thread*/, uint32_t part) {
    return part < 2 ? std::optional<size_t>(part) : std::nullopt;
  });
  return forest;
}

const CallGroups kPhases{.columns = {{"phase", "phase"}}, .words = {{"core"}, {"late"}}};
const Clock kSecond{1, ClockSource::kGiven};

TEST(CallsView, FunctionsAreJoinedByTheirNames) {
  EXPECT_EQ(ToCsv(CallsTable(Forest(), kPhases, {.clock = kSecond})),
            "phase,function,calls,cut,total_s,self_s,longest_s,guest_s,xen_s,stolen_s,halted_s,"
            "untraced_s,vcpu_lost_s,woken_s,preempted_s,sleeping_s,uninterruptible_s,lost_s\r\n"
            "core,f2,3,0,50,50,50,40,10,0,0,0,0,0,0,0,0,0\r\n"
            "core,f1,3,0,77,27,70,27,0,0,0,0,0,0,0,0,0,0\r\n"
            // Its call within itself is part of its total once.
            "late,f3,2,0,9,9,9,9,0,0,0,0,0,0,0,0,0,0\r\n");
}

TEST(CallsView, ATreeHasEachPathOfCallers) {
  EXPECT_EQ(ToText(CallTreeTable(Forest(), kPhases, {.clock = kSecond, .text = true}), {}),
            "function  calls     total      self   longest     guest    in Xen\n"
            "\n"
            "core          6  77.000 s  77.000 s  70.000 s  67.000 s  10.000 s\n"
            "  f1          3  77.000 s  27.000 s  70.000 s  67.000 s  10.000 s\n"
            "    f2        3  50.000 s  50.000 s  50.000 s  40.000 s  10.000 s\n"
            "\n"
            "late          2   9.000 s   9.000 s   9.000 s   9.000 s   0.000 s\n"
            "  f3          1   9.000 s   4.000 s   9.000 s   9.000 s   0.000 s\n"
            "    f3        1   5.000 s   5.000 s   5.000 s   5.000 s   0.000 s\n");
}

TEST(CallsView, WhatIsBeyondTheLimitIsARowBelowItsCaller) {
  EXPECT_EQ(
      ToText(CallTreeTable(Forest(), kPhases, {.clock = kSecond, .text = true, .limit = 1}), {}),
      "function      calls     total      self   longest     guest    in Xen\n"
      "\n"
      "core              6  77.000 s  77.000 s  70.000 s  67.000 s  10.000 s\n"
      "  f1              3  77.000 s  27.000 s  70.000 s  67.000 s  10.000 s\n"
      "    [1 more]      3  50.000 s  50.000 s  50.000 s  40.000 s  10.000 s\n"
      "\n"
      "late              2   9.000 s   9.000 s   9.000 s   9.000 s   0.000 s\n"
      "  f3              1   9.000 s   4.000 s   9.000 s   9.000 s   0.000 s\n"
      "    [1 more]      1   5.000 s   5.000 s   5.000 s   5.000 s   0.000 s\n");
}

// A kernel that does not say when calls end.
TEST(CallsView, CountsHaveNoTimes) {
  std::vector<CallNode> nodes(3);
  nodes[1].caller = 0;
  nodes[1].function = 0x9;
  nodes[2].caller = 1;
  nodes[2].function = 0x1;
  nodes[2].counted = 12;
  CallForest forest;
  forest.Add(nodes, FunctionAt, [](size_t, uint32_t) { return std::optional<size_t>(0); });
  EXPECT_EQ(ToText(CallTreeTable(forest, kPhases, {.clock = kSecond, .text = true}), {}),
            "function  calls\n"
            "\n"
            "core         12\n"
            "  f9          0\n"
            "    f1       12\n");
}

}  // namespace
}  // namespace xenoscope::report
