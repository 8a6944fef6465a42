#include "sampler/agent/vchan_channel.h"

#include "base/error.h"
#include "sampler/xen/privcmd.h"

#ifdef XENOSCOPE_HAVE_VCHAN

extern "C" {  // Xen's headers lack it
#include <libxenvchan.h>
#include <xentoollog.h>
}
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <string>
#include <string_view>
#include <utility>

#include "base/shared_library.h"
#include "sampler/agent/dont_fork.h"
#include "sampler/agent/fd_channel.h"
#include "sampler/xen/xenstore_handle.h"

namespace xenoscope::sampler {
namespace {

constexpr const char* kNode = "data/xenoscope";
constexpr size_t kToGuest = 4096;               // bytes of the ring for commands
constexpr size_t kFromGuest = size_t{1} << 17;  // bytes of the ring for samples

// The functions of libxenvchan and of libxentoollog, loaded when a channel is first needed.
class Libraries {
 public:
  static absl::StatusOr<const Libraries*> Load() {
    static const absl::StatusOr<Libraries> loaded = LoadAll();
    if (!loaded.ok()) return loaded.status();
    return &*loaded;
  }

  decltype(&libxenvchan_server_init) server_init = nullptr;
  decltype(&libxenvchan_client_init) client_init = nullptr;
  decltype(&libxenvchan_close) close = nullptr;
  decltype(&libxenvchan_read) read = nullptr;
  decltype(&libxenvchan_write) write = nullptr;
  decltype(&libxenvchan_wait) wait = nullptr;
  decltype(&libxenvchan_fd_for_select) fd_for_select = nullptr;
  decltype(&libxenvchan_data_ready) data_ready = nullptr;
  decltype(&libxenvchan_buffer_space) buffer_space = nullptr;
  decltype(&xtl_createlogger_stdiostream) create_logger = nullptr;
  decltype(&xtl_logger_destroy) destroy_logger = nullptr;

 private:
  // The library has the name of its Xen, and the same functions in all.
  static absl::StatusOr<SharedLibrary> LoadVchan() {
    constexpr int kNewestMinor = 30;
    constexpr int kOldestMinor = 8;
    for (int minor = kNewestMinor; minor >= kOldestMinor; --minor) {
      auto library = SharedLibrary::Load(fmt::format("libxenvchan.so.4.{}", minor), kPurpose);
      if (library.ok()) return library;
    }
    return NotFoundError("{} need libxenvchan.so.4.x, which is not installed", kPurpose);
  }
  static absl::StatusOr<Libraries> LoadAll() {
    XENOSCOPE_ASSIGN_OR_RETURN(const SharedLibrary vchan, LoadVchan());
    XENOSCOPE_ASSIGN_OR_RETURN(const SharedLibrary log,
                               SharedLibrary::Load("libxentoollog.so.1", kPurpose));
    Libraries all;
    XENOSCOPE_RETURN_IF_ERROR(vchan.Find(
        "libxenvchan_server_init", all.server_init, "libxenvchan_client_init", all.client_init,
        "libxenvchan_close", all.close, "libxenvchan_read", all.read, "libxenvchan_write",
        all.write, "libxenvchan_wait", all.wait, "libxenvchan_fd_for_select", all.fd_for_select,
        "libxenvchan_data_ready", all.data_ready, "libxenvchan_buffer_space", all.buffer_space));
    XENOSCOPE_RETURN_IF_ERROR(log.Find("xtl_createlogger_stdiostream", all.create_logger,
                                       "xtl_logger_destroy", all.destroy_logger));
    return all;
  }

  static constexpr std::string_view kPurpose = "channels to guests";
};

using Logger = std::unique_ptr<xentoollog_logger, decltype(&xtl_logger_destroy)>;
using Vchan = std::unique_ptr<libxenvchan, decltype(&libxenvchan_close)>;

// Returns a logger that drops messages: Xen's libraries print errors themselves, and here the
// caller reports them.
Logger NullLogger(const Libraries& libraries) {
  auto* const logger = libraries.create_logger(stderr, XTL_CRITICAL, 0);
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as Xen's library derives in C
  return {reinterpret_cast<xentoollog_logger*>(logger), libraries.destroy_logger};
}

// Removes the node whose content the guest writes and dom0 reads; libxenvchan writes the entries
// below it.
void RemoveNode() {
  const auto store = XenstoreHandle::Open();
  if (store.ok()) (*store)->Remove(kNode);
}

class VchanChannel final : public Channel {
 public:
  VchanChannel(const Libraries& libraries, Logger logger, Vchan vchan, bool offered)
      : libraries_(libraries),
        logger_(std::move(logger)),
        vchan_(std::move(vchan)),
        offered_(offered) {
    vchan_->blocking = 0;
  }
  VchanChannel(const VchanChannel&) = delete;
  VchanChannel& operator=(const VchanChannel&) = delete;
  ~VchanChannel() override {
    vchan_.reset();
    if (offered_) RemoveNode();
  }

  absl::StatusOr<size_t> Send(Bytes bytes) override {
    return ToCount(libraries_.write(vchan_.get(), bytes.data(), bytes.size()));
  }
  absl::StatusOr<size_t> Receive(std::span<std::byte> into) override {
    return ToCount(libraries_.read(vchan_.get(), into.data(), into.size()));
  }

  void Wait(bool to_send, std::chrono::steady_clock::time_point until, int other) override {
    // The peer announces only changes after a call that found nothing, or no room.
    if (libraries_.data_ready(vchan_.get()) > 0) return;
    if (to_send && libraries_.buffer_space(vchan_.get()) > 0) return;
    const int fd = libraries_.fd_for_select(vchan_.get());
    PollUntil(fd, POLLIN, other, until);
    pollfd now{fd, POLLIN, 0};
    // libxenvchan_wait takes the event, and would block if there were none.
    if (poll(&now, 1, 0) == 1) libraries_.wait(vchan_.get());
  }

 private:
  static absl::StatusOr<size_t> ToCount(int n) {
    if (n < 0) return absl::UnavailableError("it closed the connection");
    return static_cast<size_t>(n);
  }

  const Libraries& libraries_;
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
  XENOSCOPE_ASSIGN_OR_RETURN(const Libraries* const libraries, Libraries::Load());
  Logger logger = NullLogger(*libraries);
  Vchan vchan(libraries->server_init(logger.get(), peer.value, kNode, kToGuest, kFromGuest),
              libraries->close);
  if (vchan == nullptr) {
    return ErrnoError(errno,
                      "cannot offer a channel to domain {} under {} in xenstore (is xenfs mounted "
                      "on /proc/xen?)",
                      peer.value, kNode);
  }
  return std::make_unique<VchanChannel>(*libraries, std::move(logger), std::move(vchan), true);
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
  XENOSCOPE_ASSIGN_OR_RETURN(const Libraries* const libraries, Libraries::Load());
  Logger logger = NullLogger(*libraries);
  const std::string path = fmt::format("/local/domain/{}/{}", guest.value, kNode);
  Vchan vchan(libraries->client_init(logger.get(), guest.value, path.c_str()), libraries->close);
  if (vchan == nullptr) return NotFoundError("it offers no channel under {}", path);
  XENOSCOPE_RETURN_IF_ERROR(DontForkRings(*vchan));
  return std::make_unique<VchanChannel>(*libraries, std::move(logger), std::move(vchan), false);
}

}  // namespace xenoscope::sampler

#else

namespace xenoscope::sampler {

absl::StatusOr<std::unique_ptr<Channel>> OfferVchan(DomainId /*peer*/) { return BuiltWithoutXen(); }
absl::StatusOr<std::unique_ptr<Channel>> ConnectVchan(DomainId /*guest*/) {
  return BuiltWithoutXen();
}
absl::Status DontForkRings(const libxenvchan& /*channel*/) { return BuiltWithoutXen(); }

}  // namespace xenoscope::sampler

#endif
