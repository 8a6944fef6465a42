// The calls of functions that kernels traced (ftrace's function_graph), as trees: who called what,
// how often, and what the threads did meanwhile. What the events say of depth and nesting is the
// guest's claim.
//
//   funcgraph_entry, depth d --> a call, within the thread's call of the largest depth below d
//   funcgraph_exit, depth d ---> the end of that call; calls of a larger depth have no end: cut
//   function ------------------> a call without an end, from the function that the event says
//
// An interrupt's handler has the number of the thread that it stopped, so its calls are within
// those of the thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/mode.h"
#include "base/tsc.h"
#include "guests/threads/state_times.h"

namespace xenoscope::guests {

// The calls of one function by one path of callers, in one thread and part of time. Of each node
// `total` is `self` and the totals of those that it called.
struct CallNode {
  static constexpr size_t kNone = ~size_t{0};
  // The function of a node that stands for callers whose events were lost, or came before tracing
  // began.
  static constexpr Address kLostCallers = 0;

  // Index of the caller's node, which is less than this one's; kNone: this is no call, but has
  // those of a thread that nobody else called that is traced.
  size_t caller = kNone;
  Address function = kLostCallers;  // an address in it
  size_t thread = 0;                // index
  uint32_t part = 0;                // in which the outermost call began
  uint64_t calls = 0;               // of which begin and end are known
  // Calls of which only the begin or only the end is known; of their time, only that of the calls
  // within them.
  uint64_t cut = 0;
  // Calls of kernels that do not say when a call ends: they have no time.
  uint64_t counted = 0;
  StateTimes total{};
  StateTimes self{};   // without the calls within them
  Cycles longest = 0;  // of one of `calls`
};

class CallTrees {
 public:
  // What is known of the thread when the event comes.
  struct Now {
    size_t thread = 0;  // index
    Tsc at;
    uint64_t losses = 0;       // of events up to then: calls during which there was one are cut
    const StateTimes& so_far;  // the thread's times
    bool is_idle = false;      // it has no time while other threads run
  };
  // The function begins, or returns, at this depth: 0 is that of the outermost call. O(1) amortised
  // but for calls that are cut.
  void Enter(Address function, uint64_t depth, const Now& now);
  void Return(Address function, uint64_t depth, const Now& now);
  // The function is called from the address.
  void Count(Address function, Address from, const Now& now);
  // Counts an event for which the thread has no calls of its own.
  void LeaveOut() { ++left_out_; }

  // Divides the time: outermost calls that begin in [begins[i], begins[i + 1]) are of the part i.
  // Events come in the order of time. To be called before the first one.
  void SetParts(std::vector<Tsc> begins) { part_begins_ = std::move(begins); }
  // Cuts the calls that have not ended.
  void Finish();
  // Checks that self times add up to the times of outermost calls, of each thread and part.
  [[nodiscard]] absl::Status Check() const;

  [[nodiscard]] const std::vector<CallNode>& nodes() const { return nodes_; }
  // Returns how many calls are in no node: beyond the limits.
  [[nodiscard]] uint64_t left_out() const { return left_out_; }

  // Nodes of one kernel. Where there are this many, calls that need a new one are left out, with
  // those within them: their time is their caller's.
  static constexpr size_t kMaxNodes = size_t{1} << 17;
  // Calls of one thread within each other, and of all threads. Linux keeps 50 of a thread.
  static constexpr size_t kMaxDepth = 512;
  static constexpr size_t kMaxOpen = size_t{1} << 17;

 private:
  static constexpr size_t kNone = CallNode::kNone;
  struct Frame {
    size_t node = kNone;  // kNone: left out
    Address function = 0;
    uint64_t depth = 0;
    bool is_call = true;  // else it stands for callers that are not known
    Tsc begin;
    StateTimes before{};
    StateTimes inner{};  // of calls within it
  };
  struct Stack {
    std::vector<Frame> frames;  // the innermost last
    size_t root = kNone;        // node, while there are frames
    uint64_t losses = 0;
    uint64_t beyond = 0;  // calls within the last frame for which there is no frame
  };

  // Returns the thread's stack without calls that a loss of events has cut.
  Stack& StackOf(const Now& now);
  // Returns the node, or kNone: there is no room.
  size_t NodeOf(size_t caller, Address function);
  size_t RootOf(size_t thread, Tsc at);
  void Push(Stack& stack, Address function, uint64_t depth, bool is_call, const Now& now);
  // Ends the innermost call with its time if that is known, or cut.
  void End(Stack& stack, const std::optional<StateTimes>& times);
  void CutFrom(Stack& stack, uint64_t depth);

  std::vector<CallNode> nodes_;
  absl::flat_hash_map<std::pair<size_t, Address>, size_t> node_of_;   // by caller and function
  absl::flat_hash_map<std::pair<size_t, uint32_t>, size_t> root_of_;  // by thread and part
  std::vector<Stack> stacks_;                                         // by thread
  std::vector<Tsc> part_begins_;
  uint32_t part_ = 0;
  size_t open_ = 0;
  uint64_t left_out_ = 0;
};

}  // namespace xenoscope::guests
