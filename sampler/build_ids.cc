#include "sampler/build_ids.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "symbolizer/elf/build_id.h"

namespace xenoscope::sampler {
namespace {

constexpr size_t kMaxIdBytes = 64;  // limit of a build-id in bytes; linkers make 8 to 20
constexpr int kTimeoutMs = 2000;
// Limit of starts: a file that ends the process that reads it is rare; more of them are an attack.
constexpr int kMaxStarts = 4;

struct Answer {
  uint32_t size = 0;
  std::array<uint8_t, kMaxIdBytes> id{};
};

// A message with a descriptor, and with what is wanted of its file.
class FileMessage {
 public:
  using Wanted = BuildIds::Wanted;

  explicit FileMessage(Wanted wanted = Wanted::kBuildId) : wanted_(wanted) {
    message_.msg_iov = &data_;
    message_.msg_iovlen = 1;
    message_.msg_control = control_.data();
    message_.msg_controllen = control_.size();
  }
  FileMessage(const FileMessage&) = delete;
  FileMessage& operator=(const FileMessage&) = delete;
  ~FileMessage() = default;

  bool Send(int socket, int fd) {
    cmsghdr* const header = CMSG_FIRSTHDR(&message_);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fd);
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    return sendmsg(socket, &message_, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof wanted_;
  }

  // Returns the descriptor; -1: the peer is gone.
  int Receive(int socket) {
    if (recvmsg(socket, &message_, MSG_CMSG_CLOEXEC) != sizeof wanted_) return -1;
    const cmsghdr* const header = CMSG_FIRSTHDR(&message_);
    if (header == nullptr || header->cmsg_type != SCM_RIGHTS) return -1;
    int fd = -1;
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
    return fd;
  }

  // Returns what the received message asks for.
  [[nodiscard]] Wanted wanted() const { return wanted_; }

 private:
  Wanted wanted_;
  iovec data_{&wanted_, sizeof wanted_};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control_{};
  msghdr message_{};
};

// Runs in the sandbox, which may have been forked while other threads ran: it allocates no memory.
void Serve(int socket) {
  while (true) {
    FileMessage request;
    const int fd = request.Receive(socket);
    if (fd < 0) return;
    Answer answer;
    answer.size = static_cast<uint32_t>(request.wanted() == BuildIds::Wanted::kBuildOrContentId
                                            ? symbolizer::ReadFileId(fd, answer.id)
                                            : symbolizer::ReadBuildId(fd, answer.id));
    close(fd);
    if (send(socket, &answer, sizeof answer, MSG_NOSIGNAL) != sizeof answer) return;
  }
}

bool ReceiveAnswer(int socket, Answer& answer) {
  pollfd wait{socket, POLLIN, 0};
  return poll(&wait, 1, kTimeoutMs) == 1 &&
         recv(socket, &answer, sizeof answer, MSG_DONTWAIT) == sizeof answer &&
         answer.size <= kMaxIdBytes;
}

// Opens a regular file. Opening a device or a pipe may have side effects, so the file is first
// examined. Opening must not block either: a process that has a lease on the file (fcntl(2),
// F_SETLEASE) has 45 s to give it up.
int OpenRegularFile(const std::string& path, std::optional<uint64_t> inode) {
  const int place = open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC);
  if (place < 0) return -1;
  struct stat info {};
  int fd = -1;
  if (fstat(place, &info) == 0 && S_ISREG(info.st_mode) &&
      info.st_ino == inode.value_or(info.st_ino)) {
    fd = open(fmt::format("/proc/self/fd/{}", place).c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  }
  close(place);
  return fd;
}

}  // namespace

bool BuildIds::Ready() {
  if (reader_) return true;
  if (started_ == kMaxStarts) return false;
  ++started_;
  absl::StatusOr<Sandbox> reader = Sandbox::Start({}, Serve);
  if (reader.ok()) {
    reader_ = *std::move(reader);
    return true;
  }
  started_ = kMaxStarts;
  notes_.push_back(
      fmt::format("build-ids of running programs are not known: {}", Message(reader.status())));
  return false;
}

std::vector<uint8_t> BuildIds::Read(const std::string& path) {
  return ReadId(path, std::nullopt, Wanted::kBuildId);
}

std::vector<uint8_t> BuildIds::ReadOrContentId(const std::string& path, uint64_t inode) {
  return ReadId(path, inode, Wanted::kBuildOrContentId);
}

std::vector<uint8_t> BuildIds::ReadId(const std::string& path, std::optional<uint64_t> inode,
                                      Wanted wanted) {
  const int fd = OpenRegularFile(path, inode);
  if (fd < 0) return {};
  Answer answer;
  if (!Ready()) {
    close(fd);
    return {};
  }
  const bool answered =
      FileMessage(wanted).Send(reader_->socket(), fd) && ReceiveAnswer(reader_->socket(), answer);
  close(fd);
  if (answered) return {answer.id.begin(), answer.id.begin() + answer.size};
  notes_.push_back(
      fmt::format("the build-id of {} is not known: the process that reads it did not answer; {}{}",
                  path, reader_->End(), started_ == kMaxStarts ? ", and no other is started" : ""));
  reader_.reset();
  return {};
}

}  // namespace xenoscope::sampler
