#include "cli/record_share.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "cli/options.h"
#include "cli/own_command.h"
#include "cli/shared_slice.h"
#include "sampler/agent/send_shared.h"
#include "sampler/agent/vchan_channel.h"
#include "sampler/xen/host.h"
#include "store/slice_bytes.h"

namespace xenoscope::cli {
namespace {

static_assert(store::kMaxSliceBytes <= sampler::agent::kMaxSharedBytes);

// A file in memory, for what another process writes. It has no name that could be another file's.
class MemoryFile {
 public:
  static absl::StatusOr<MemoryFile> Make() {
    const int fd = memfd_create("xenoscope-slice", MFD_CLOEXEC);
    if (fd < 0) return ErrnoError(errno, "cannot make a file in memory for a slice");
    return MemoryFile(fd);
  }
  MemoryFile(MemoryFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  MemoryFile& operator=(MemoryFile&&) = delete;
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() {
    if (fd_ >= 0) close(fd_);
  }

  [[nodiscard]] int fd() const { return fd_; }
  // Returns what was written to it, at most `most` bytes. Errors: it is longer.
  [[nodiscard]] absl::StatusOr<std::vector<std::byte>> Read(size_t most) const {
    struct stat about {};
    if (fstat(fd_, &about) != 0) return ErrnoError(errno, "cannot read a slice");
    if (static_cast<size_t>(about.st_size) > most) {
      return ExhaustedError("a slice has more than {} MB: record for a shorter time", most >> 20);
    }
    std::vector<std::byte> bytes(static_cast<size_t>(about.st_size));
    const ssize_t read = pread(fd_, bytes.data(), bytes.size(), 0);
    bytes.resize(read < 0 ? 0 : static_cast<size_t>(read));
    return bytes;
  }

 private:
  explicit MemoryFile(int fd) : fd_(fd) {}

  int fd_;
};

// Returns the domain's part of the recording, as it is sent. The recording is not trusted: as for
// --push, a process that restricts itself reads it, and nothing here looks at what it writes.
absl::StatusOr<std::vector<std::byte>> MakePart(const std::string& recording,
                                                const std::string& domain) {
  constexpr std::chrono::milliseconds kSharePollInterval{20};
  XENOSCOPE_ASSIGN_OR_RETURN(const MemoryFile file, MemoryFile::Make());
  const std::string to = fmt::format("{}/proc/self/fd/{}", kSliceScheme, file.fd());
  // The host's name is not in the part, and need not be known.
  const std::string host(store::kAnyHost);
  const std::vector<std::string> words = {"push", recording, "--share", domain,   "--to",
                                          to,     "--host",  host,      "--quiet"};
  XENOSCOPE_ASSIGN_OR_RETURN(sampler::ChildProcess push, StartOwn(words, file.fd()));
  while (!push.Poll()) std::this_thread::sleep_for(kSharePollInterval);
  if (push.Poll()->Succeeded()) return file.Read(store::kMaxSliceBytes);
  return PreconditionError(
      "{}: the recording is complete, but {}'s part of it could not be made; `xenoscope push {} "
      "--share {} --to sqlite:FILE` makes it again",
      recording, domain, recording, domain);
}

// Returns why the guest's agent cannot be sent anything now; OK: it may be there.
absl::Status CheckActive(const recording::RecordingInfo& info,
                         const recording::DomainInfo& domain) {
  if (domain.died) return absl::UnavailableError("the domain has ended");
  const std::string source = fmt::format("agent-{}", domain.id.value);
  if (std::ranges::find(info.sources, source, &recording::SourceInfo::name) == info.sources.end()) {
    return PreconditionError("the domain was not active, as a note above says");
  }
  return absl::OkStatus();
}

absl::Status ShareWith(const std::string& recording, const recording::RecordingInfo& info,
                       const std::string& name) {
  const absl::StatusOr<DomainId> id = sampler::FindDomain(info.domains, name);
  if (!id.ok()) {
    fmt::print(stderr, "note: --share: {}\n", Message(id.status()));
    return absl::OkStatus();
  }
  const recording::DomainInfo& domain = *info.Domain(*id);
  const std::string label = DomainLabel(domain.id, domain.name);
  absl::Status sent = CheckActive(info, domain);
  size_t size = 0;
  if (sent.ok()) {
    XENOSCOPE_ASSIGN_OR_RETURN(const std::vector<std::byte> part, MakePart(recording, name));
    size = part.size();
    const sampler::agent::Host host{.tsc_hz = info.host.clock_hz, .read_tsc = sampler::ReadTsc};
    sent = sampler::SendShared(domain, part, sampler::ConnectVchan, host);
  }
  if (!sent.ok()) {
    fmt::print(stderr, "note: {}: nothing was shared with it: {}\n", label, Message(sent));
  } else {
    fmt::print(stderr,
               "{}: has its own part of the recording, {:.1f} kB: `xenoscope report "
               "--shared` in the guest shows it\n",
               label, static_cast<double>(size) / 1e3);
  }
  return absl::OkStatus();
}

}  // namespace

void CheckShare(const std::vector<std::string>& share, const RecordOptions& recorded,
                bool continuous) {
  if (share.empty()) return;
  for (const std::string& domain : share) {
    if (std::ranges::find(recorded.active, domain) != recorded.active.end()) continue;
    ThrowUsageError("--share",
                    fmt::format("{} gets it from its agent; add --active {}", domain, domain));
  }
  if (recorded.no_trace) {
    ThrowUsageError("--share",
                    "needs Xen's trace, which says for whom a guest waited: leave out "
                    "--no-trace");
  }
  if (continuous) {
    ThrowUsageError("--share",
                    "does not go with --continuous: an agent serves one recording at a "
                    "time, and the next slice begins at once; record one after the other");
  }
}

absl::Status ShareRecording(const std::string& recording, const recording::RecordingInfo& info,
                            const std::vector<std::string>& share) {
  absl::Status status;
  for (const std::string& domain : share) status.Update(ShareWith(recording, info, domain));
  return status;
}

}  // namespace xenoscope::cli
