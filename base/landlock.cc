#include "base/landlock.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace xenoscope {
namespace {

// linux/landlock.h and its rights' versions; Debian 12's header does not have all of it.
constexpr uint32_t kAskVersion = 1;    // LANDLOCK_CREATE_RULESET_VERSION
constexpr int kPathBeneath = 1;        // LANDLOCK_RULE_PATH_BENEATH
constexpr uint64_t kExecute = 1 << 0;  // LANDLOCK_ACCESS_FS_...
constexpr uint64_t kWriteFile = 1 << 1;
constexpr uint64_t kReadFile = 1 << 2;
constexpr uint64_t kReadDirectory = 1 << 3;
constexpr uint64_t kMakeCharDevice = 1 << 6;
constexpr uint64_t kMakeBlockDevice = 1 << 11;
constexpr uint64_t kAllFirst = (1 << 13) - 1;  // of version 1
constexpr uint64_t kRefer = 1 << 13;           // since 2
constexpr uint64_t kTruncate = 1 << 14;        // since 3
constexpr uint64_t kTcp = 3;                   // LANDLOCK_ACCESS_NET_..., since 4
constexpr uint64_t kScopeSockets = 1 << 0;     // LANDLOCK_SCOPE_..., since 6
constexpr uint64_t kScopeSignals = 1 << 1;
constexpr uint64_t kOfFiles = kExecute | kWriteFile | kReadFile | kTruncate;
constexpr int kWithRefer = 2;
constexpr int kWithTruncate = 3;
constexpr int kWithNetwork = 4;
constexpr int kWithScopes = 6;

struct Handled {
  uint64_t files = 0;
  uint64_t network = 0;
  uint64_t scopes = 0;
};

// struct landlock_path_beneath_attr
struct [[gnu::packed]] Rule {
  uint64_t access;
  int32_t beneath;
};

int Create(const Handled* handled, size_t size, uint32_t flags) {
  return static_cast<int>(syscall(SYS_landlock_create_ruleset, handled, size, flags));
}

}  // namespace

Landlock::Landlock(const Exceptions& exceptions) {
  const int version = Create(nullptr, 0, kAskVersion);
  if (version <= 0) return;
  handled_ = kAllFirst;
  if (version >= kWithRefer) handled_ |= kRefer;
  if (version >= kWithTruncate) handled_ |= kTruncate;
  Handled handled{.files = handled_};
  size_t size = sizeof handled.files;
  if (version >= kWithNetwork) {
    size += sizeof handled.network;
    if (!exceptions.network) handled.network = kTcp;
  }
  if (version >= kWithScopes) {
    size += sizeof handled.scopes;
    handled.scopes = exceptions.signals ? kScopeSockets : kScopeSockets | kScopeSignals;
  }
  rules_ = Create(&handled, size, 0);
}

Landlock::~Landlock() {
  if (rules_ >= 0) close(rules_);
}

void Landlock::Read(const std::string& path) { Allow(path, kReadFile | kReadDirectory); }

void Landlock::Write(const std::string& path) {
  Allow(path, handled_ & ~(kExecute | kMakeCharDevice | kMakeBlockDevice));
}

void Landlock::Allow(const std::string& path, uint64_t access) {
  if (rules_ < 0) return;
  const int place = open(path.c_str(), O_PATH | O_CLOEXEC);
  if (place < 0) return;
  struct stat info {};
  if (fstat(place, &info) == 0 && !S_ISDIR(info.st_mode)) access &= kOfFiles;
  const Rule rule{access, place};
  // An error means a pipe or the like, which is not restricted.
  syscall(SYS_landlock_add_rule, rules_, kPathBeneath, &rule, 0);
  close(place);
}

bool Landlock::Restrict() {
  return rules_ >= 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_landlock_restrict_self, rules_, 0) == 0;
}

}  // namespace xenoscope
