// The name of a container or service, by its cgroup.
#pragma once

#include <string>

namespace xenoscope::guests {

// Returns the container's name by the path of its cgroup: that which docker, podman, LXC,
// Kubernetes or systemd gave it; empty for the root.
[[nodiscard]] std::string ContainerName(const std::string& cgroup);

}  // namespace xenoscope::guests
