// Writes a mark of this domain into Xen's trace.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "trace/guest_mark.h"

namespace xenoscope::sampler {

// Writes one mark. Xen drops it if no trace is being recorded, and does not say so. Errors: a text
// of more than 64 bytes, not on Xen, not root, no /dev/xen/privcmd, no hypercalls for programs.
absl::Status WriteMark(trace::GuestMarkKind kind, const std::string& text);

}  // namespace xenoscope::sampler
