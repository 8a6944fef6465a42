// Xen's trace buffers: which process empties them, their size, and a trace that a killed recorder
// left running.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace xenoscope::sampler {

// The offsets up to which a pCPU's trace buffer was written and read: bytes, modulo twice its size
// (xen/include/public/trace.h, struct t_buf).
struct TraceBufferState {
  uint32_t cons = 0;
  uint32_t prod = 0;
};

// Returns whether Xen writes to buffers of `room` bytes, from two readings: one buffer has grown,
// or is so full that Xen cannot write. Inconsistent readings count as not written.
bool IsBeingWritten(std::span<const TraceBufferState> before,
                    std::span<const TraceBufferState> after, uint32_t room);

// Returns whether a process takes the records that Xen writes; Xen notifies one listener. False
// where that cannot be known.
bool HasTraceConsumer();

// Returns the size of each pCPU's trace buffer in pages of 4 KiB: it stays the same until Xen
// reboots. Nothing while there are no buffers, or where the size cannot be known.
std::optional<uint32_t> TraceBufferPages();

// Xen writes no more records. What its buffers hold stays there for their reader. Does nothing
// where that is not possible.
void PauseTrace();

// Returns whether Xen traces without a reader: there is no listener, and the buffers are being
// written. Takes 0.1 s; changes nothing. False where it cannot be known.
bool IsTraceStale();

// Ends such a trace, and empties the buffers, along with Xen's count of records that found no room,
// which would otherwise begin the next trace. Does nothing where a process takes the records, where
// that cannot be known, or where nothing is traced.
void StopStaleTrace();

}  // namespace xenoscope::sampler
