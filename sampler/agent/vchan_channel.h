// A channel between two domains: a ring in memory that the guest grants, and an event channel.
// The guest offers it to one domain only, under data/xenoscope of its own part of xenstore; Xen
// lets no other domain map what was granted.
#pragma once

#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "sampler/agent/channel.h"

struct libxenvchan;

namespace xenoscope::sampler {

// In the guest: offers a channel to domain `peer`. What it leaves in xenstore goes with it. Send
// and Receive give 0 until the peer has come. Errors: a device of Xen's is missing, no xenstore.
absl::StatusOr<std::unique_ptr<Channel>> OfferVchan(DomainId peer);

// In dom0: connects to what the guest offers. Processes that are made later have no part in the
// channel's memory. Errors: NotFound: it offers nothing.
absl::StatusOr<std::unique_ptr<Channel>> ConnectVchan(DomainId guest);

// Leaves both rings of a channel of libxenvchan out of processes that are made later
// (sampler/agent/dont_fork.h): on a PVH dom0 Linux would hand them on. Errors: those of DontFork.
absl::Status DontForkRings(const libxenvchan& channel);

}  // namespace xenoscope::sampler
