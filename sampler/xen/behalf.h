// The domain on whose behalf a process of dom0 works: its device model (QEMU), or a thread of
// Linux's back ends. What a guest says never decides.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/ids.h"

namespace xenoscope::sampler {

// Returns the process that is the domain's device model, as the toolstack wrote it into xenstore;
// nothing if the domain has none.
using DeviceModelOf = std::function<std::optional<uint32_t>(DomainId)>;

// Returns the domain on whose behalf the process with this first thread's name works; empty: that
// is known of no process.
using BehalfOf = std::function<std::optional<DomainId>(uint32_t pid, std::string_view name)>;

class BehalfFinder {
 public:
  // `proc` is where Linux's processes are listed.
  explicit BehalfFinder(DeviceModelOf device_model_of, std::string proc = "/proc")
      : device_model_of_(std::move(device_model_of)), proc_(std::move(proc)) {}

  // Returns the domain, or nothing: for processes that serve all domains (xenstored, xenconsoled),
  // those that serve none, and those that have ended. `name` is the name of the process's first
  // thread. Reads at most two small files and one entry of xenstore.
  [[nodiscard]] std::optional<DomainId> Find(uint32_t pid, std::string_view name) const;

 private:
  [[nodiscard]] bool IsKernelThread(uint32_t pid) const;
  [[nodiscard]] std::string FileOf(uint32_t pid, std::string_view name) const;

  DeviceModelOf device_model_of_;
  std::string proc_;
};

// Returns what finds it by xenstore; empty where xenstore does not answer.
[[nodiscard]] BehalfOf FindBehalfByXenstore();

// Returns the domain that a thread of a back end is named after: "2.xvda-0" of xen-blkback and
// "vif2.0-q0-guest" of xen-netback (Linux 6.1, drivers/block/xen-blkback/xenbus.c,
// drivers/net/xen-netback/interface.c).
[[nodiscard]] std::optional<DomainId> DomainInBackEndName(std::string_view name);

// Returns the domain in a device model's command line, whose words end with zeros: "-xen-domid",
// "2".
[[nodiscard]] std::optional<DomainId> DomainInCommandLine(std::string_view line);

}  // namespace xenoscope::sampler
