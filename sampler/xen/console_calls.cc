#include "sampler/xen/console_calls.h"

#include "base/error.h"

#ifdef XENOSCOPE_HAVE_XEN

extern "C" {  // Xen's headers lack it
#include <xencall.h>
}

#include <algorithm>
#include <cerrno>

#include "base/hypercalls.h"
#include "sampler/xen/privcmd.h"
#include "sampler/xen/sysctl_abi.h"

namespace xenoscope::sampler {
namespace {

constexpr uint32_t kMaxReadBytes = 16 * 1024;

class XenConsoleCalls final : public ConsoleCalls {
 public:
  explicit XenConsoleCalls(xencall_handle* calls) : calls_(calls) {}
  XenConsoleCalls(const XenConsoleCalls&) = delete;
  XenConsoleCalls& operator=(const XenConsoleCalls&) = delete;
  ~XenConsoleCalls() override {
    if (op_ != nullptr) xencall_free_buffer(calls_, op_);
    if (bytes_ != nullptr) xencall_free_buffer(calls_, bytes_);
    xencall_close(calls_);
  }

  absl::Status Ready() {
    op_ = static_cast<Sysctl*>(xencall_alloc_buffer(calls_, sizeof(Sysctl)));
    bytes_ = static_cast<char*>(xencall_alloc_buffer(calls_, kMaxReadBytes));
    if (op_ == nullptr || bytes_ == nullptr) return ErrnoError(errno, "no memory for hypercalls");
    // Xen checks the version before anything else, and refuses all but its own.
    for (version_ = kFirstSysctlVersion; version_ <= kLastSysctlVersion; ++version_) {
      LivepatchCount ignored;
      const int error = CountLivepatches(ignored);
      if (error == -EACCES) continue;
      if (error == -EPERM) return PermissionError("Xen does not let this domain read its console");
      return absl::OkStatus();
    }
    return UnimplementedError("this Xen's sysctl version is above {:#x}: use a newer xenoscope",
                              kLastSysctlVersion);
  }

  int CountLivepatches(LivepatchCount& count) override {
    Prepare(SysctlOp::kLivepatch);
    op_->u.livepatches.operation = kLivepatchList;
    const int error = Call();
    count = {.loaded = op_->u.livepatches.count, .version = op_->u.livepatches.version};
    return error;
  }

  int PressKey(char key) override {
    Prepare(SysctlOp::kDebugKeys);
    *bytes_ = key;
    op_->u.keys.keys = AddressOf(bytes_);
    op_->u.keys.count = 1;
    return Call();
  }

  int ReadConsole(bool from_index, uint32_t& index, std::string& text) override {
    Prepare(SysctlOp::kReadConsole);
    op_->u.console.incremental = from_index ? 1 : 0;
    op_->u.console.index = index;
    op_->u.console.buffer = AddressOf(bytes_);
    op_->u.console.count = kMaxReadBytes;
    const int error = Call();
    if (error != 0) return error;
    index = op_->u.console.index;
    text.append(bytes_, std::min(op_->u.console.count, kMaxReadBytes));
    return 0;
  }

 private:
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the hypercall's ABI
  static uint64_t AddressOf(const void* memory) { return reinterpret_cast<uint64_t>(memory); }

  void Prepare(SysctlOp op) {
    *op_ = {};
    op_->op = op;
    op_->version = version_;
  }

  int Call() { return xencall1(calls_, hypercall::kSysctl, AddressOf(op_)) < 0 ? -errno : 0; }

  xencall_handle* calls_;
  Sysctl* op_ = nullptr;
  char* bytes_ = nullptr;
  uint32_t version_ = 0;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ConsoleCalls>> OpenConsoleCalls() {
  XENOSCOPE_RETURN_IF_ERROR(CheckPrivcmd());
  xencall_handle* const handle = xencall_open(nullptr, 0);
  if (handle == nullptr) return ErrnoError(errno, "cannot open /dev/xen/privcmd");
  auto calls = std::make_unique<XenConsoleCalls>(handle);
  XENOSCOPE_RETURN_IF_ERROR(calls->Ready());
  return calls;
}

}  // namespace xenoscope::sampler

#else

namespace xenoscope::sampler {

absl::StatusOr<std::unique_ptr<ConsoleCalls>> OpenConsoleCalls() {
  return UnimplementedError(
      "this xenoscope was built without Xen's libraries: install libxen-dev and build again");
}

}  // namespace xenoscope::sampler

#endif
