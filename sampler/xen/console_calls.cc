#include "sampler/xen/console_calls.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/error.h"
#include "sampler/xen/domctl_handle.h"
#include "sampler/xen/sysctl_handle.h"

namespace xenoscope::sampler {
namespace {

constexpr uint32_t kMaxReadBytes = 16 * 1024;

class XenConsoleCalls final : public ConsoleCalls {
 public:
  // `bytes` is memory of `sysctl` of kMaxReadBytes.
  XenConsoleCalls(std::unique_ptr<SysctlHandle> sysctl, char* bytes)
      : sysctl_(std::move(sysctl)), bytes_(bytes) {}

  int CountLivepatches(LivepatchCount& count) override {
    Sysctl& argument = sysctl_->Prepare(SysctlOp::kLivepatch);
    argument.u.livepatches.operation = kLivepatchList;
    const int error = sysctl_->Call();
    count = {.loaded = argument.u.livepatches.count, .version = argument.u.livepatches.version};
    return error;
  }

  int PressKey(char key) override {
    Sysctl& argument = sysctl_->Prepare(SysctlOp::kDebugKeys);
    *bytes_ = key;
    argument.u.keys.keys = XenAddressOf(bytes_);
    argument.u.keys.count = 1;
    return sysctl_->Call();
  }

  int ReadConsole(bool from_index, uint32_t& index, std::string& text) override {
    Sysctl& argument = sysctl_->Prepare(SysctlOp::kReadConsole);
    argument.u.console.incremental = from_index ? 1 : 0;
    argument.u.console.index = index;
    argument.u.console.buffer = XenAddressOf(bytes_);
    argument.u.console.count = kMaxReadBytes;
    const int error = sysctl_->Call();
    if (error != 0) return error;
    index = argument.u.console.index;
    text.append(bytes_, std::min(argument.u.console.count, kMaxReadBytes));
    return 0;
  }

 private:
  std::unique_ptr<SysctlHandle> sysctl_;
  char* bytes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ConsoleCalls>> OpenConsoleCalls() {
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<SysctlHandle> sysctl,
                             SysctlHandle::Open("read its console"));
  char* const bytes = static_cast<char*>(sysctl->Allocate(kMaxReadBytes));
  if (bytes == nullptr) return ErrnoError(ENOMEM, "no memory for hypercalls");
  return std::make_unique<XenConsoleCalls>(std::move(sysctl), bytes);
}

}  // namespace xenoscope::sampler
