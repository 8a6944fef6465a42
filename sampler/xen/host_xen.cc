// The facts about the host that need Xen's libraries: pCPUs by platform_op, domains by xenstore.
#include "absl/strings/numbers.h"
#include "base/error.h"
#include "base/hypercalls.h"
#include "sampler/xen/host.h"
#include "sampler/xen/privcmd.h"

#ifdef XENOSCOPE_HAVE_XEN

extern "C" {  // Xen's headers lack it
#include <xen/platform.h>
#include <xen/version.h>
#include <xen/xen.h>
}
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "sampler/xen/xencall_handle.h"
#include "sampler/xen/xenstore_handle.h"

namespace xenoscope::sampler {
namespace {

using recording::DomainInfo;
using recording::DomainType;

std::optional<DomainId> ParseId(std::string_view text) {
  uint16_t id = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), id);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return DomainId{id};
}

DomainType TypeOf(std::string_view word) {
  if (word == "pv") return DomainType::kPv;
  if (word == "pvh") return DomainType::kPvh;
  if (word == "hvm") return DomainType::kHvm;
  return DomainType::kUnknown;
}

class XenstoreDirectory final : public DomainDirectory {
 public:
  explicit XenstoreDirectory(std::unique_ptr<XenstoreHandle> store) : store_(std::move(store)) {}

  absl::StatusOr<std::vector<DomainInfo>> List() override {
    const std::set<DomainId> ids = Ids();
    if (ids.empty()) return PreconditionError("xenstore lists no domains: is xenstored running?");
    std::vector<DomainInfo> domains;
    for (const DomainId id : ids) {
      DomainInfo& domain = domains.emplace_back();
      domain.id = id;
      const std::string home = fmt::format("/local/domain/{}", id.value);
      domain.name = store_->Read(home + "/name");
      domain.vcpus = static_cast<uint32_t>(store_->Directory(home + "/cpu").size());
      if (domain.vcpus == 0 && id == kDom0) {  // xenstore has no entry for dom0's
        domain.vcpus = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_CONF));
      }
      domain.type = TypeOf(store_->Read(fmt::format("/libxl/{}/type", id.value)));
      if (id == kDom0) domain.type = Dom0IsPv() ? DomainType::kPv : DomainType::kPvh;
    }
    return domains;
  }

  std::set<DomainId> Ids() override {
    std::set<DomainId> ids;
    for (const std::string& name : store_->Directory("/local/domain")) {
      if (const auto id = ParseId(name)) ids.insert(*id);
    }
    return ids;
  }

  std::optional<uint32_t> DeviceModelOf(DomainId id) override {
    uint32_t pid = 0;
    const std::string text =
        store_->Read(fmt::format("/local/domain/{}/image/device-model-pid", id.value));
    return absl::SimpleAtoi(text, &pid) ? std::optional(pid) : std::nullopt;
  }

  bool OffersAgent(DomainId id) override {
    // What libxenvchan writes last (tools/libs/vchan/init.c).
    return !store_->Read(fmt::format("/local/domain/{}/data/xenoscope/event-channel", id.value))
                .empty();
  }

 private:
  std::unique_ptr<XenstoreHandle> store_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DomainDirectory>> DomainDirectory::Open() {
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<XenstoreHandle> store, XenstoreHandle::Open());
  return std::make_unique<XenstoreDirectory>(std::move(store));
}

std::string XenCommandLine() {
  const auto calls = XencallHandle::Open();
  void* const buffer = calls.ok() ? (*calls)->Allocate(sizeof(xen_commandline_t)) : nullptr;
  if (buffer == nullptr ||
      (*calls)->Call(hypercall::kXenVersion, XENVER_commandline, XenAddressOf(buffer)) < 0) {
    return "";
  }
  const auto* const line = static_cast<const char*>(buffer);
  std::string text(line, strnlen(line, sizeof(xen_commandline_t)));
  text.erase(text.find_last_not_of(' ') + 1);
  return text;
}

absl::StatusOr<std::vector<uint32_t>> OnlineApicIds() {
  XENOSCOPE_RETURN_IF_ERROR(CheckPrivcmd());
  XENOSCOPE_ASSIGN_OR_RETURN(const std::unique_ptr<XencallHandle> calls, XencallHandle::Open());
  auto* const op = static_cast<xen_platform_op*>(calls->Allocate(sizeof(xen_platform_op)));
  if (op == nullptr) return ErrnoError(errno, "no memory for a hypercall");
  std::vector<uint32_t> ids;
  uint32_t last = 0;
  for (uint32_t cpu = 0; cpu <= last; ++cpu) {
    *op = {};
    op->cmd = XENPF_get_cpuinfo;
    op->interface_version = XENPF_INTERFACE_VERSION;
    op->u.pcpu_info.xen_cpuid = cpu;
    const int result = calls->Call(hypercall::kPlatformOp, XenAddressOf(op));
    if (result < 0) return ErrnoError(-result, "cannot ask Xen for its processors");
    last = op->u.pcpu_info.max_present;
    if ((op->u.pcpu_info.flags & XEN_PCPU_FLAGS_ONLINE) != 0)
      ids.push_back(op->u.pcpu_info.apic_id);
  }
  return ids;
}

}  // namespace xenoscope::sampler

#else

namespace xenoscope::sampler {

absl::StatusOr<std::unique_ptr<DomainDirectory>> DomainDirectory::Open() {
  return BuiltWithoutXen();
}
std::string XenCommandLine() { return ""; }
absl::StatusOr<std::vector<uint32_t>> OnlineApicIds() { return BuiltWithoutXen(); }

}  // namespace xenoscope::sampler

#endif
