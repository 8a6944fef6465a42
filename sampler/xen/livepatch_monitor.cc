#include "sampler/xen/livepatch_monitor.h"

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "base/error.h"
#include "symbolizer/livepatches.h"

namespace xenoscope::sampler {
namespace {

// Limit of attempts: while another process loads a livepatch, Xen answers "Try again".
constexpr int kMaxAttempts = 3;
// Limit of the console's text: the largest ring that Xen makes (conring_size=).
constexpr size_t kMaxConsoleBytes = size_t{16} << 20;

// Reads until the console has no more.
absl::Status ReadAll(ConsoleCalls& calls, bool from_index, uint32_t& index, std::string& text) {
  while (text.size() < kMaxConsoleBytes) {
    const size_t before = text.size();
    const int error = calls.ReadConsole(from_index, index, text);
    if (error != 0) return ErrnoError(-error, "cannot read Xen's console");
    if (text.size() == before) return absl::OkStatus();
    from_index = true;
  }
  return absl::OkStatus();
}

// Returns the last list in the text; empty: there is none.
std::string_view LastList(std::string_view text) {
  std::string_view list;
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (symbolizer::BeginsLivepatchList(line)) list = rest;
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
  }
  return list;
}

}  // namespace

absl::StatusOr<std::string> LivepatchMonitor::Poll() {
  LivepatchCount now;
  const int error = calls_->CountLivepatches(now);
  if (error == -ENOSYS || error == -EOPNOTSUPP) return "";
  if (error != 0) return ErrnoError(-error, "Xen does not list its livepatches");
  if (now.version == seen_.version) return "";
  seen_ = now;
  if (now.loaded == 0) return "";
  return List();
}

absl::StatusOr<std::string> LivepatchMonitor::List() {
  uint32_t index = 0;
  std::string before;
  XENOSCOPE_RETURN_IF_ERROR(ReadAll(*calls_, false, index, before));
  size_t told = 0;
  for (int i = 0; i < kMaxAttempts; ++i) {
    if (const int error = calls_->PressKey('x'); error != 0) {
      return ErrnoError(-error, "Xen does not take the debug key x");
    }
    std::string text;
    XENOSCOPE_RETURN_IF_ERROR(ReadAll(*calls_, true, index, text));
    const std::string_view list = LastList(text);
    told = symbolizer::ReadLivepatches(list).patches.size();
    if (told == seen_.loaded) return std::string(list);
  }
  return PreconditionError(
      "Xen has {} livepatches, but its console lists {} (xl debug-keys x; xl dmesg), so their "
      "functions have no names; a larger conring_size= may hold the whole list",
      seen_.loaded, told);
}

}  // namespace xenoscope::sampler
