// Tracing that a killed recorder has left on in Xen.
#pragma once

namespace xenoscope::sampler {

// Ends it, and with it what Xen remembers of records that found no room: they would begin the next
// trace. Does nothing where somebody takes the records, where it cannot be known whether somebody
// does, or where nothing is traced.
void EndUnreadTrace();

}  // namespace xenoscope::sampler
