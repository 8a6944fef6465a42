#include "sampler/agent/vchan_channel.h"

#include "base/error.h"

#ifdef XENOSCOPE_HAVE_VCHAN

extern "C" {  // Xen's headers lack it
#include <libxenvchan.h>
#include <xenstore.h>
#include <xentoollog.h>
}
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <utility>

#include "sampler/agent/dont_fork.h"
#include "sampler/agent/fd_channel.h"

namespace xenoscope::sampler {
namespace {

constexpr const char* kNode = "data/xenoscope";
constexpr size_t kToGuest = 4096;               // bytes of the ring for commands
constexpr size_t kFromGuest = size_t{1} << 17;  // bytes of the ring for samples

struct DestroyLogger {
  void operator()(xentoollog_logger* logger) const { xtl_logger_destroy(logger); }
};
using Logger = std::unique_ptr<xentoollog_logger, DestroyLogger>;

// Returns a logger that drops messages: Xen's libraries print errors themselves, and here the
// caller reports them.
Logger NullLogger() {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as Xen's library derives in C
  return Logger(
      reinterpret_cast<xentoollog_logger*>(xtl_createlogger_stdiostream(stderr, XTL_CRITICAL, 0)));
}

struct CloseVchan {
  void operator()(libxenvchan* vchan) const { libxenvchan_close(vchan); }
};
using Vchan = std::unique_ptr<libxenvchan, CloseVchan>;

// Removes the node whose content the guest writes and dom0 reads; libxenvchan writes the entries
// below it.
void RemoveNode() {
  xs_handle* store = xs_open(0);
  if (store == nullptr) return;
  xs_rm(store, XBT_NULL, kNode);
  xs_close(store);
}

class VchanChannel final : public Channel {
 public:
  VchanChannel(Logger logger, Vchan vchan, bool offered)
      : logger_(std::move(logger)), vchan_(std::move(vchan)), offered_(offered) {
    vchan_->blocking = 0;
  }
  VchanChannel(const VchanChannel&) = delete;
  VchanChannel& operator=(const VchanChannel&) = delete;
  ~VchanChannel() override {
    vchan_.reset();
    if (offered_) RemoveNode();
  }

  absl::StatusOr<size_t> Send(Bytes bytes) override {
    return ToCount(libxenvchan_write(vchan_.get(), bytes.data(), bytes.size()));
  }
  absl::StatusOr<size_t> Receive(std::span<std::byte> into) override {
    return ToCount(libxenvchan_read(vchan_.get(), into.data(), into.size()));
  }

  void Wait(bool to_send, std::chrono::steady_clock::time_point until, int other) override {
    // The peer announces only changes after a call that found nothing, or no room.
    if (libxenvchan_data_ready(vchan_.get()) > 0) return;
    if (to_send && libxenvchan_buffer_space(vchan_.get()) > 0) return;
    const int fd = libxenvchan_fd_for_select(vchan_.get());
    PollUntil(fd, POLLIN, other, until);
    pollfd now{fd, POLLIN, 0};
    // libxenvchan_wait takes the event, and would block if there were none.
    if (poll(&now, 1, 0) == 1) libxenvchan_wait(vchan_.get());
  }

 private:
  static absl::StatusOr<size_t> ToCount(int n) {
    if (n < 0) return absl::UnavailableError("it closed the connection");
    return static_cast<size_t>(n);
  }

  Logger logger_;
  Vchan vchan_;
  bool offered_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Channel>> OfferVchan(DomainId peer) {
  for (const char* device : {"/dev/xen/evtchn", "/dev/xen/gntalloc"}) {
    if (access(device, R_OK | W_OK) != 0) {
      return ErrnoError(errno,
                        "{}: is this a Xen guest, is this root? Run `modprobe -a xen-evtchn "
                        "xen-gntalloc xenfs; mount -t xenfs none /proc/xen`",
                        device);
    }
  }
  Logger logger = NullLogger();
  Vchan vchan(libxenvchan_server_init(logger.get(), peer.value, kNode, kToGuest, kFromGuest));
  if (vchan == nullptr) {
    return ErrnoError(errno,
                      "cannot offer a channel to domain {} under {} in xenstore (is xenfs mounted "
                      "on /proc/xen?)",
                      peer.value, kNode);
  }
  return std::make_unique<VchanChannel>(std::move(logger), std::move(vchan), true);
}

absl::Status DontForkRings(const libxenvchan& channel) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as bytes
  const auto* const indices = reinterpret_cast<const std::byte*>(channel.ring);
  XENOSCOPE_RETURN_IF_ERROR(DontFork({indices, sizeof *channel.ring}));
  for (const libxenvchan_ring& ring : {channel.read, channel.write}) {
    const auto* const buffer = static_cast<const std::byte*>(ring.buffer);
    XENOSCOPE_RETURN_IF_ERROR(DontFork({buffer, size_t{1} << ring.order}));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Channel>> ConnectVchan(DomainId guest) {
  Logger logger = NullLogger();
  const std::string path = fmt::format("/local/domain/{}/{}", guest.value, kNode);
  Vchan vchan(libxenvchan_client_init(logger.get(), guest.value, path.c_str()));
  if (vchan == nullptr) return NotFoundError("it offers no channel under {}", path);
  XENOSCOPE_RETURN_IF_ERROR(DontForkRings(*vchan));
  return std::make_unique<VchanChannel>(std::move(logger), std::move(vchan), false);
}

}  // namespace xenoscope::sampler

#else

namespace xenoscope::sampler {

namespace {
absl::Status NoLibrary() {
  return UnimplementedError(
      "this xenoscope was built without libxenvchan: install libxen-dev and build again");
}
}  // namespace

absl::StatusOr<std::unique_ptr<Channel>> OfferVchan(DomainId /*peer*/) { return NoLibrary(); }
absl::StatusOr<std::unique_ptr<Channel>> ConnectVchan(DomainId /*guest*/) { return NoLibrary(); }
absl::Status DontForkRings(const libxenvchan& /*channel*/) { return NoLibrary(); }

}  // namespace xenoscope::sampler

#endif
