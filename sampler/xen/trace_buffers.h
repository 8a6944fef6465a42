// Xen's trace buffers: who empties them, how large they are, and tracing that a killed recorder has
// left on.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace xenoscope::sampler {

// How far a pCPU's trace buffer was written and read: bytes, modulo twice its room
// (xen/include/public/trace.h, struct t_buf).
struct TraceBufferState {
  uint32_t cons = 0;
  uint32_t prod = 0;
};

// Whether Xen writes to buffers of `room` bytes, of two looks at them: one of them has got more, or
// is so full that Xen cannot write. What does not fit together is not being written to.
bool IsBeingWritten(std::span<const TraceBufferState> before,
                    std::span<const TraceBufferState> after, uint32_t room);

// Whether somebody takes the records that Xen writes: it announces them to one listener. False
// where it cannot be known.
bool HasTraceConsumer();

// How large each pCPU's trace buffer is, in pages of 4 KiB: once made they stay so until Xen
// reboots. Nothing while there are none, or where it cannot be known.
std::optional<uint32_t> TraceBufferPages();

// Whether Xen traces for nobody: nobody listens, and the buffers are being written. Takes a tenth
// of a second; changes nothing. False where it cannot be known.
bool IsTraceStale();

// Ends it, and takes out of the buffers what nobody read; with it goes what Xen remembers of
// records that found no room: they would begin the next trace. Does nothing where somebody takes
// the records, where it cannot be known whether somebody does, or where nothing is traced.
void StopStaleTrace();

}  // namespace xenoscope::sampler
