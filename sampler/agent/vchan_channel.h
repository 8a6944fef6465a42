// A channel between two domains: a ring in memory that the guest grants, and an event channel. The
// guest offers it to one domain only, under data/xenoscope in its part of xenstore; Xen lets no
// other domain map the granted memory.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "sampler/agent/channel.h"

struct libxenvchan;

namespace xenoscope::sampler {

// In the guest: offers a channel to domain `peer`. Its entries in xenstore are removed with it.
// Send and Receive return 0 until the peer has come. Errors: a device of Xen's is missing, or there
// is no xenstore.
absl::StatusOr<std::unique_ptr<Channel>> OfferVchan(DomainId peer);

// In dom0: connects to the channel that the guest offers. Processes that are made later do not have
// the channel's memory. Errors: NotFound: the guest offers none.
absl::StatusOr<std::unique_ptr<Channel>> ConnectVchan(DomainId guest);

// Excludes both rings of a libxenvchan channel from processes that are made later
// (sampler/agent/dont_fork.h): in a PVH dom0 Linux would pass them on. Errors: those of DontFork.
absl::Status DontForkRings(const libxenvchan& channel);

}  // namespace xenoscope::sampler
