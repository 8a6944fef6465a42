// Whether Xen still writes to simulated buffers.
#include "sampler/xen/trace_buffers.h"

#include <gtest/gtest.h>

#include <vector>

namespace xenoscope::sampler {
namespace {

using States = std::vector<TraceBufferState>;
constexpr uint32_t kRoom = 2 * 4096 - 8;

TEST(TraceBuffers, GrowingBufferIsBeingWritten) {
  EXPECT_TRUE(IsBeingWritten(States{{0, 100}, {0, 0}}, States{{0, 140}, {0, 0}}, kRoom));
  EXPECT_TRUE(IsBeingWritten(States{{0, 0}, {500, 500}}, States{{0, 0}, {500, 508}}, kRoom));
  EXPECT_FALSE(IsBeingWritten(States{{0, 100}, {7, 7}}, States{{0, 100}, {7, 7}}, kRoom));
}

TEST(TraceBuffers, FullBufferIsBeingWritten) {
  const States full = {{1000, 1000 + kRoom - 40}};
  EXPECT_TRUE(IsBeingWritten(full, full, kRoom));
  const States around = {{kRoom + 4000, 4000 - 40}};  // modulo twice the room
  EXPECT_TRUE(IsBeingWritten(around, around, kRoom));
  const States half = {{1000, 1000 + kRoom / 2}};
  EXPECT_FALSE(IsBeingWritten(half, half, kRoom));
}

TEST(TraceBuffers, RefusesInvalidBuffers) {
  EXPECT_FALSE(IsBeingWritten({}, {}, kRoom));
  const States before = {{0, 0}, {0, 0}};
  EXPECT_FALSE(IsBeingWritten(before, States{{0, 2 * kRoom}, {~0U, 8}}, kRoom));
  EXPECT_FALSE(IsBeingWritten(before, States{{0, kRoom + 8}}, kRoom));  // more than there is room
  EXPECT_FALSE(IsBeingWritten(before, States{{0, 8}}, 0));
}

}  // namespace
}  // namespace xenoscope::sampler
