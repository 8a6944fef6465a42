// Whether this process can make hypercalls (/dev/xen/privcmd), and why not.
#pragma once

#include "absl/status/status.h"

namespace xenoscope::sampler {

// Returns OK if this process may make hypercalls as dom0. Errors, each with what to do: not on Xen,
// not root, not dom0, /dev/xen/privcmd missing.
absl::Status CheckPrivcmd();

// Returns OK if this process may make hypercalls for its own domain, whichever that is. Errors as
// above.
absl::Status CheckOwnPrivcmd();

// Returns the error of a program that was built without Xen's headers.
absl::Status BuiltWithoutXen();

// Returns false on a machine without Xen and in a guest.
bool MayBeDom0();

}  // namespace xenoscope::sampler
