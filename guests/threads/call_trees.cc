#include "guests/threads/call_trees.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace xenoscope::guests {
namespace {

// Returns the times from `before` to `so_far`; nothing: the second is less, which a kernel can
// bring about that contradicts itself.
std::optional<StateTimes> Between(const StateTimes& before, const StateTimes& so_far) {
  for (size_t state = 0; state < before.size(); ++state) {
    if (so_far[state] < before[state]) return std::nullopt;
  }
  return Since(before, so_far);
}

}  // namespace

size_t CallTrees::NodeOf(size_t caller, Address function) {
  if (caller == kNone) return kNone;
  const auto found = node_of_.find({caller, function});
  if (found != node_of_.end()) return found->second;
  if (nodes_.size() >= kMaxNodes) return kNone;
  node_of_[{caller, function}] = nodes_.size();
  nodes_.push_back({.caller = caller,
                    .function = function,
                    .thread = nodes_[caller].thread,
                    .part = nodes_[caller].part});
  return nodes_.size() - 1;
}

size_t CallTrees::RootOf(size_t thread, Tsc at) {
  while (part_ + 1 < part_begins_.size() && part_begins_[part_ + 1] <= at) ++part_;
  const auto found = root_of_.find({thread, part_});
  if (found != root_of_.end()) return found->second;
  if (nodes_.size() >= kMaxNodes) return kNone;
  root_of_[{thread, part_}] = nodes_.size();
  nodes_.push_back({.thread = thread, .part = part_});
  return nodes_.size() - 1;
}

CallTrees::Stack& CallTrees::StackOf(const Now& now) {
  if (stacks_.size() <= now.thread) stacks_.resize(now.thread + 1);
  Stack& stack = stacks_[now.thread];
  if (stack.losses == now.losses) return stack;
  CutFrom(stack, 0);
  stack.beyond = 0;
  stack.losses = now.losses;
  return stack;
}

void CallTrees::Push(Stack& stack, Address function, uint64_t depth, bool is_call, const Now& now) {
  if (stack.frames.size() >= kMaxDepth || open_ >= kMaxOpen) {
    ++stack.beyond;
    ++left_out_;
    return;
  }
  const size_t caller = stack.frames.empty() ? stack.root : stack.frames.back().node;
  const size_t node = NodeOf(caller, function);
  if (node == kNone && is_call) ++left_out_;
  stack.frames.push_back({.node = node,
                          .function = function,
                          .depth = depth,
                          .is_call = is_call,
                          .begin = now.at,
                          .before = now.so_far});
  ++open_;
}

void CallTrees::Enter(Address function, uint64_t depth, const Now& now) {
  Stack& stack = StackOf(now);
  CutFrom(stack, depth);
  if (stack.frames.empty()) {
    stack.root = RootOf(now.thread, now.at);
    if (depth > 0) Push(stack, CallNode::kLostCallers, depth - 1, /*is_call=*/false, now);
  }
  Push(stack, function, depth, /*is_call=*/true, now);
}

void CallTrees::Return(Address function, uint64_t depth, const Now& now) {
  Stack& stack = StackOf(now);
  const auto is_within = [&] { return stack.frames.empty() || stack.frames.back().depth < depth; };
  if (stack.beyond > 0 && is_within()) {
    --stack.beyond;
    return;
  }
  if (depth < std::numeric_limits<uint64_t>::max()) CutFrom(stack, depth + 1);
  if (!is_within() && stack.frames.back().is_call && stack.frames.back().function == function) {
    const Frame& frame = stack.frames.back();
    std::optional<StateTimes> times = Between(frame.before, now.so_far);
    const bool is_whole = times && (now.is_idle || Sum(*times) == now.at - frame.begin);
    if (!is_whole || !Between(frame.inner, *times)) times.reset();
    return End(stack, times);
  }
  // Its begin is not known.
  CutFrom(stack, depth);
  size_t caller = stack.frames.empty() ? kNone : stack.frames.back().node;
  if (stack.frames.empty()) {
    caller = NodeOf(RootOf(now.thread, now.at), CallNode::kLostCallers);
  }
  const size_t node = NodeOf(caller, function);
  if (node == kNone) {
    ++left_out_;
  } else {
    ++nodes_[node].cut;
  }
}

void CallTrees::Count(Address function, Address from, const Now& now) {
  const size_t node = NodeOf(NodeOf(RootOf(now.thread, now.at), from), function);
  if (node == kNone) return LeaveOut();
  ++nodes_[node].counted;
}

void CallTrees::End(Stack& stack, const std::optional<StateTimes>& times) {
  const Frame frame = stack.frames.back();
  stack.frames.pop_back();
  --open_;
  stack.beyond = 0;
  if (frame.node == kNone) return;
  CallNode& node = nodes_[frame.node];
  const StateTimes& known = times ? *times : frame.inner;
  AddTo(node.total, known);
  AddTo(stack.frames.empty() ? nodes_[stack.root].total : stack.frames.back().inner, known);
  if (!times) {
    node.cut += frame.is_call ? 1 : 0;
    return;
  }
  ++node.calls;
  AddTo(node.self, Since(frame.inner, *times));
  node.longest = std::max(node.longest, Sum(*times));
}

void CallTrees::CutFrom(Stack& stack, uint64_t depth) {
  while (!stack.frames.empty() && stack.frames.back().depth >= depth) End(stack, std::nullopt);
}

void CallTrees::Finish() {
  for (Stack& stack : stacks_) CutFrom(stack, 0);
}

absl::Status CallTrees::Check() const {
  std::vector<StateTimes> self(nodes_.size());
  for (size_t i = nodes_.size(); i-- > 0;) {
    const CallNode& node = nodes_[i];
    AddTo(self[i], node.self);
    if (node.caller != kNone) {
      AddTo(self[node.caller], self[i]);
    } else if (self[i] != node.total) {
      return InternalError("calls took {} cycles, and those of each function {}", Sum(node.total),
                           Sum(self[i]));
    }
  }
  return absl::OkStatus();
}

}  // namespace xenoscope::guests
