// Tracing that a killed recorder has left on in Xen.
#pragma once

#include <cstdint>
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

// Whether Xen traces for nobody: nobody listens, and the buffers are being written. Takes a tenth
// of a second; changes nothing. False where it cannot be known.
bool IsTracingForNobody();

// Ends it, and takes out of the buffers what nobody read; with it goes what Xen remembers of
// records that found no room: they would begin the next trace. Does nothing where somebody takes
// the records, where it cannot be known whether somebody does, or where nothing is traced.
void EndUnreadTrace();

}  // namespace xenoscope::sampler
