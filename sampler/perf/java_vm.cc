#include "sampler/perf/java_vm.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "base/error.h"
#include "base/file.h"
#include "sampler/open_as_user.h"
#include "sampler/running_processes.h"
#include "sampler/small_file.h"

namespace xenoscope::sampler {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

constexpr milliseconds kSocketInterval(20);
constexpr std::chrono::seconds kLongestInterval(60);
constexpr std::chrono::seconds kLongestAnswer(1);
// Limit, as any user can start processes.
constexpr size_t kMostProcesses = 1024;
constexpr size_t kMostNotes = 4;
// The version of the protocol, the command, and its three arguments, each with a 0 behind it.
constexpr char kRequestText[] = "1\0jcmd\0Compiler.perfmap\0\0";
constexpr std::string_view kRequest(kRequestText, sizeof kRequestText);
constexpr size_t kMostReply = size_t{64} << 10;
constexpr size_t kMostMessage = 100;

// Returns whether the text of /proc/PID/status says that the process catches SIGQUIT.
bool CatchesQuit(std::string_view status) {
  const std::string_view signals = FieldOf(status, "SigCgt:\t").value_or("");
  uint64_t caught = 0;
  return absl::SimpleHexAtoi(absl::string_view(signals.data(), signals.size()), &caught) &&
         (caught >> (SIGQUIT - 1) & 1) != 0;
}

bool HasHotSpot(const std::string& process) {
  return std::ranges::any_of(MapsOf(process + "/maps"), [](const ExecutableMap& map) {
    return absl::StrContains(map.path, "/libjvm.so");  // "(deleted)" may follow
  });
}

// The two files of a machine in its /tmp.
struct AttachNames {
  std::string socket;
  std::string trigger;
};

bool HasSocket(int tmp, const std::string& name) {
  struct stat status {};
  return fstatat(tmp, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(status.st_mode);
}

// Makes the machine open its socket, and waits for that.
absl::Status OpenSocket(int tmp, const AttachNames& names, int machine,
                        steady_clock::time_point until) {
  const File trigger(openat(tmp, names.trigger.c_str(),
                            O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!trigger.is_open()) return ErrnoError(errno, "cannot make {} in its /tmp", names.trigger);
  absl::Status opened;
  if (syscall(SYS_pidfd_send_signal, machine, SIGQUIT, nullptr, 0) != 0) {
    opened = ErrnoError(errno, "it takes no signal");
  }
  while (opened.ok() && !HasSocket(tmp, names.socket)) {
    if (steady_clock::now() >= until) opened = absl::DeadlineExceededError("it does not answer");
    poll(nullptr, 0, static_cast<int>(kSocketInterval.count()));
  }
  unlinkat(tmp, names.trigger.c_str(), 0);
  return opened;
}

absl::StatusOr<File> Connect(int tmp, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("/proc/self/fd/{}/{}", tmp, name);
  if (path.size() >= sizeof address.sun_path) return InternalError("{} is too long", path);
  std::ranges::copy(path, std::begin(address.sun_path));
  File socket_file(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): as in POSIX
  const auto* const generic = reinterpret_cast<const sockaddr*>(&address);
  if (connect(socket_file.fd(), generic, sizeof address) != 0) {
    return ErrnoError(errno, "cannot connect to {} in its /tmp", name);
  }
  return socket_file;
}

// Returns all that it replies until it closes the connection.
absl::StatusOr<std::string> ReplyOf(int machine, steady_clock::time_point until) {
  std::string reply;
  while (reply.size() < kMostReply) {
    const auto left = std::chrono::ceil<milliseconds>(until - steady_clock::now()).count();
    pollfd wait{machine, POLLIN, 0};
    if (left <= 0 || poll(&wait, 1, static_cast<int>(left)) == 0) {
      return absl::DeadlineExceededError("it does not answer");
    }
    std::array<char, 4096> piece{};
    const ssize_t n = recv(machine, piece.data(), piece.size(), MSG_DONTWAIT);
    if (n == 0) return reply;
    if (n > 0) reply.append(piece.data(), static_cast<size_t>(n));
    if (n < 0 && errno != EAGAIN && errno != EINTR) return ErrnoError(errno, "it does not answer");
  }
  return reply;
}

// Sends the command. A reply is the number of an error, 0 for none, and a text on the next lines.
absl::Status Command(int machine, steady_clock::time_point until) {
  if (send(machine, kRequest.data(), kRequest.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(kRequest.size())) {
    return ErrnoError(errno, "it takes no command");
  }
  XENOSCOPE_ASSIGN_OR_RETURN(std::string reply, ReplyOf(machine, until));
  if (absl::StartsWith(reply, "0\n")) return absl::OkStatus();
  const size_t text = std::min(reply.size(), reply.find('\n') + 1);
  std::string why = reply.substr(text, std::min(kMostMessage, reply.find('\n', text) - text));
  for (char& letter : why) {
    if (std::isprint(static_cast<unsigned char>(letter)) == 0) letter = '?';
  }
  return UnimplementedError("it has no Compiler.perfmap, which is of Java 17 and later ({})", why);
}

absl::Status Ask(int tmp, const AttachNames& names, int machine, steady_clock::time_point until) {
  if (!HasSocket(tmp, names.socket)) {
    XENOSCOPE_RETURN_IF_ERROR(OpenSocket(tmp, names, machine, until));
  }
  XENOSCOPE_ASSIGN_OR_RETURN(const File connected, Connect(tmp, names.socket));
  return Command(connected.fd(), until);
}

}  // namespace

absl::StatusOr<bool> AskForPerfMap(const std::string& process, uint32_t pid,
                                   steady_clock::time_point until) {
  // It is of this process even when that ends and another one gets its number.
  const File machine(static_cast<int>(syscall(SYS_pidfd_open, pid, 0)));
  if (!machine.is_open() && errno != ESRCH) {
    return ErrnoError(errno, "this Linux is older than 5.3, or does not let it be opened");
  }
  const File directory(open(process.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!machine.is_open() || !directory.is_open()) return NotFoundError("it has gone");
  const std::string opened = fmt::format("/proc/self/fd/{}", directory.fd());
  const std::string status = ReadSmallFile(opened + "/status").value_or(std::string());
  if (!CatchesQuit(status) || !HasHotSpot(opened)) return false;
  const auto ids = ParseUserIds(status);
  const File tmp = ids ? OpenProcessTmp(opened) : File();
  if (!tmp.is_open()) return PermissionError("its user or its /tmp is not known");
  const uint32_t own = NumberInNamespace(opened, pid);
  const AttachNames names{fmt::format(".java_pid{}", own), fmt::format(".attach_pid{}", own)};
  absl::Status asked = PermissionError("its user's rights cannot be taken");
  WithRightsOf(*ids, [&] {
    if (syscall(SYS_geteuid) == ids->user) asked = Ask(tmp.fd(), names, machine.fd(), until);
  });
  XENOSCOPE_RETURN_IF_ERROR(asked);
  return true;
}

void JavaVms::Add(uint32_t pid) {
  if (processes_.size() == kMostProcesses) return;
  const auto [added, is_new] = processes_.try_emplace(pid);
  if (is_new) added->second.next = steady_clock::now() + added->second.interval;
}

void JavaVms::AskDue(Instant until) {
  for (auto& [pid, schedule] : processes_) {
    const Instant now = steady_clock::now();
    if (now >= until) return;
    if (now < schedule.next) continue;
    Ask(pid, schedule, until);
    schedule.next = steady_clock::now() + schedule.interval;
    schedule.interval = std::min(2 * schedule.interval, kLongestInterval);
  }
  absl::erase_if(processes_, [](const auto& each) { return absl::IsNotFound(each.second.asked); });
}

void JavaVms::AskAll(Instant until) {
  std::vector<std::pair<uint32_t, Schedule*>> order;
  for (auto& [pid, schedule] : processes_) order.emplace_back(pid, &schedule);
  std::partition(order.begin(), order.end(),
                 [](const auto& each) { return !absl::IsDeadlineExceeded(each.second->asked); });
  for (const auto& [pid, schedule] : order) {
    if (steady_clock::now() >= until) return;
    Ask(pid, *schedule, until);
  }
}

// Other processes than machines have nothing to say, and may become one. One that has gone without
// an answer keeps the reason.
void JavaVms::Ask(uint32_t pid, Schedule& schedule, Instant until) {
  if (absl::IsUnimplemented(schedule.asked)) return;
  const Instant end = std::min(until, steady_clock::now() + kLongestAnswer);
  const absl::StatusOr<bool> asked = AskForPerfMap(fmt::format("{}/{}", proc_, pid), pid, end);
  if (absl::IsNotFound(asked.status()) && !schedule.asked.ok()) return;
  if (asked.ok() && !*asked) return;
  schedule.asked = asked.status();
  schedule.has_answered = schedule.has_answered || asked.ok();
}

std::vector<std::string> JavaVms::Notes() const {
  std::vector<std::string> notes;
  size_t silent = 0;
  for (const auto& [pid, schedule] : processes_) {
    if (schedule.has_answered || schedule.asked.ok() || absl::IsNotFound(schedule.asked)) continue;
    if (++silent > kMostNotes) continue;
    notes.push_back(fmt::format("the Java virtual machine {} did not write its functions: {}", pid,
                                Message(schedule.asked)));
  }
  if (silent > kMostNotes) {
    notes.push_back(fmt::format("{} other Java virtual machines did not write their functions",
                                silent - kMostNotes));
  }
  return notes;
}

}  // namespace xenoscope::sampler
