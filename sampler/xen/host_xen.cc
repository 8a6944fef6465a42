// The facts about the host that need Xen's libraries: pCPUs by platform_op, domains by xenstore.
#include "absl/strings/numbers.h"
#include "base/error.h"
#include "base/hypercalls.h"
#include "sampler/xen/host.h"

#ifdef XENOSCOPE_HAVE_XEN

extern "C" {  // Xen's headers lack it
#include <xen/platform.h>
#include <xen/version.h>
#include <xen/xen.h>
#include <xencall.h>
#include <xenstore.h>
}
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "sampler/xen/privcmd.h"

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
  explicit XenstoreDirectory(xs_handle* store) : store_(store) {}
  XenstoreDirectory(const XenstoreDirectory&) = delete;
  XenstoreDirectory& operator=(const XenstoreDirectory&) = delete;
  ~XenstoreDirectory() override { xs_close(store_); }

  absl::StatusOr<std::vector<DomainInfo>> List() override {
    const std::set<DomainId> ids = Ids();
    if (ids.empty()) return PreconditionError("xenstore lists no domains: is xenstored running?");
    std::vector<DomainInfo> domains;
    for (const DomainId id : ids) {
      DomainInfo& domain = domains.emplace_back();
      domain.id = id;
      const std::string home = fmt::format("/local/domain/{}", id.value);
      domain.name = Read(home + "/name");
      domain.vcpus = static_cast<uint32_t>(Names(home + "/cpu").size());
      if (domain.vcpus == 0 && id == kDom0) {  // xenstore has no entry for dom0's
        domain.vcpus = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_CONF));
      }
      domain.type = TypeOf(Read(fmt::format("/libxl/{}/type", id.value)));
      if (id == kDom0) domain.type = Dom0IsPv() ? DomainType::kPv : DomainType::kPvh;
    }
    return domains;
  }

  std::set<DomainId> Ids() override {
    std::set<DomainId> ids;
    for (const std::string& name : Names("/local/domain")) {
      if (const auto id = ParseId(name)) ids.insert(*id);
    }
    return ids;
  }

  std::optional<uint32_t> DeviceModelOf(DomainId id) override {
    uint32_t pid = 0;
    const std::string text = Read(fmt::format("/local/domain/{}/image/device-model-pid", id.value));
    return absl::SimpleAtoi(text, &pid) ? std::optional(pid) : std::nullopt;
  }

  bool OffersAgent(DomainId id) override {
    // What libxenvchan writes last (tools/libs/vchan/init.c).
    return !Read(fmt::format("/local/domain/{}/data/xenoscope/event-channel", id.value)).empty();
  }

 private:
  std::string Read(const std::string& path) {
    unsigned size = 0;
    void* text = xs_read(store_, XBT_NULL, path.c_str(), &size);
    if (text == nullptr) return "";
    std::string value(static_cast<const char*>(text), size);
    std::free(text);
    return value;
  }

  std::vector<std::string> Names(const std::string& path) {
    unsigned count = 0;
    char** names = xs_directory(store_, XBT_NULL, path.c_str(), &count);
    if (names == nullptr) return {};
    std::vector<std::string> result(names, names + count);
    std::free(names);
    return result;
  }

  xs_handle* store_;
};

using Calls = std::unique_ptr<xencall_handle, int (*)(xencall_handle*)>;
Calls OpenCalls() { return {xencall_open(nullptr, 0), xencall_close}; }

}  // namespace

absl::StatusOr<std::unique_ptr<DomainDirectory>> DomainDirectory::Open() {
  xs_handle* store = xs_open(0);
  if (store == nullptr) {
    return PreconditionError("xenstore does not answer: start xenstored (service xen start)");
  }
  return std::make_unique<XenstoreDirectory>(store);
}

std::string XenCommandLine() {
  std::string text;
  const auto calls = OpenCalls();
  if (calls == nullptr) return text;
  void* buffer = xencall_alloc_buffer(calls.get(), sizeof(xen_commandline_t));
  if (buffer == nullptr) return text;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the hypercall's ABI
  const auto address = reinterpret_cast<uint64_t>(buffer);
  if (xencall2(calls.get(), hypercall::kXenVersion, XENVER_commandline, address) >= 0) {
    const auto* const line = static_cast<const char*>(buffer);
    text.assign(line, strnlen(line, sizeof(xen_commandline_t)));
    text.erase(text.find_last_not_of(' ') + 1);
  }
  xencall_free_buffer(calls.get(), buffer);
  return text;
}

absl::StatusOr<std::vector<uint32_t>> OnlineApicIds() {
  XENOSCOPE_RETURN_IF_ERROR(CheckPrivcmd());
  const auto calls = OpenCalls();
  if (calls == nullptr) return ErrnoError(errno, "cannot open /dev/xen/privcmd");
  auto* op =
      static_cast<xen_platform_op*>(xencall_alloc_buffer(calls.get(), sizeof(xen_platform_op)));
  if (op == nullptr) return ErrnoError(errno, "no memory for a hypercall");
  std::vector<uint32_t> ids;
  absl::Status status;
  uint32_t last = 0;
  for (uint32_t cpu = 0; cpu <= last && status.ok(); ++cpu) {
    *op = {};
    op->cmd = XENPF_get_cpuinfo;
    op->interface_version = XENPF_INTERFACE_VERSION;
    op->u.pcpu_info.xen_cpuid = cpu;
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the hypercall's ABI
    if (xencall1(calls.get(), hypercall::kPlatformOp, reinterpret_cast<uint64_t>(op)) < 0) {
      status = ErrnoError(errno, "cannot ask Xen for its processors");
    }
    last = op->u.pcpu_info.max_present;
    if ((op->u.pcpu_info.flags & XEN_PCPU_FLAGS_ONLINE) != 0)
      ids.push_back(op->u.pcpu_info.apic_id);
  }
  xencall_free_buffer(calls.get(), op);
  if (!status.ok()) return status;
  return ids;
}

}  // namespace xenoscope::sampler

#else

namespace xenoscope::sampler {

namespace {
absl::Status NoLibraries() {
  return UnimplementedError(
      "this xenoscope was built without Xen's libraries: install libxen-dev and build again");
}
}  // namespace

absl::StatusOr<std::unique_ptr<DomainDirectory>> DomainDirectory::Open() { return NoLibraries(); }
std::string XenCommandLine() { return ""; }
absl::StatusOr<std::vector<uint32_t>> OnlineApicIds() { return NoLibraries(); }

}  // namespace xenoscope::sampler

#endif
