#include "cli/confinement.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/landlock.h"
#include "cli/metrics_server.h"
#include "cli/shared_store.h"
#include "cli/symbol_config.h"
#include "store/clickhouse/server_url.h"
#include "symbolizer/index_cache.h"

namespace xenoscope::cli {
namespace {

namespace fs = std::filesystem;

// Directories in / that hold what is private, or the system's own.
constexpr std::array kPrivateDirectories{"etc", "root", "home", "proc", "run", "sys", "dev", "var"};
// Files in these that the C library, terminals, time zones and TLS need.
constexpr std::array kSystemFiles{"/etc/ld.so.cache",
                                  "/etc/localtime",
                                  "/etc/terminfo",
                                  "/etc/nsswitch.conf",
                                  "/etc/hosts",
                                  "/etc/host.conf",
                                  "/etc/gai.conf",
                                  "/etc/resolv.conf",
                                  "/etc/services",
                                  "/etc/passwd",
                                  "/etc/group",
                                  "/etc/ssl",
                                  "/etc/pki",
                                  "/etc/ca-certificates",
                                  "/etc/ca-certificates.conf",
                                  "/etc/debuginfod",
                                  "/etc/gnutls",
                                  "/etc/pkcs11",
                                  "/etc/crypto-policies",
                                  "/proc/self",
                                  "/proc/cpuinfo",
                                  "/proc/meminfo",
                                  "/proc/stat",
                                  "/sys/devices/system/cpu",
                                  "/var/lib/ca-certificates"};
// Hidden directories of homes that hold programs, as their installers make them.
constexpr std::array kProgramDirectories{
    ".local/bin",      ".local/lib",    ".cargo/bin",     ".rustup/toolchains", ".pyenv/versions",
    ".rbenv/versions", ".nvm/versions", ".asdf/installs", ".sdkman/candidates"};
constexpr std::array kWritableDevices{"/dev/null",   "/dev/zero",   "/dev/tty", "/dev/pts",
                                      "/dev/stdout", "/dev/stderr", "/dev/fd"};

std::string Environment(const char* name) {
  const char* const value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): no threads yet
  return value == nullptr ? "" : value;
}

bool Exists(const std::string& path) {
  std::error_code ignored;
  return !path.empty() && fs::exists(path, ignored);
}

// The files that the command line and configuration files name.
struct NamedFiles {
  std::vector<std::string> read;
  std::vector<std::string> write;  // directories
  bool server = false;             // whether a debuginfod server may be asked
  bool store_server = false;       // whether a store's server is asked
  bool listens = false;            // whether a port serves metrics
};

// "FILE", "web1=FILE", "web1:kernel=FILE,root=DIR", and below `directory` when it is relative.
void AddRead(const std::string& text, const fs::path& directory, NamedFiles& named) {
  std::vector<std::string> candidates = {text};
  const std::vector<std::string> fields = absl::StrSplit(text, absl::ByAnyChar(",:"));
  for (const std::string& field : fields) {
    candidates.push_back(field);
    candidates.push_back(field.substr(field.find('=') + 1));  // all of it, if there is none
  }
  candidates.push_back(text.substr(text.find('=') + 1));
  for (const std::string& candidate : candidates) {
    const std::string path = directory / candidate;
    if (!candidate.empty() && Exists(path)) named.read.push_back(path);
  }
}

// "clickhouse://...": the network, and what libcurl reads.
void AddStoreServer(const std::string& text, NamedFiles& named) {
  if (!text.starts_with(store::kClickHouseScheme)) return;
  named.store_server = true;
  const auto url = store::ParseServerUrl(text);
  if (!url.ok()) return;  // opening the store will say why
  AddRead(url->netrc.empty() ? Environment("HOME") + "/.netrc" : url->netrc, "", named);
  AddRead(url->ca, "", named);
}

void AddConfigured(const std::string& file, NamedFiles& named) {
  named.read.push_back(file);
  const auto options = ReadSymbolConfig(file);
  if (!options.ok()) return;  // its reader will say why
  for (const auto* texts : {&options->kernels, &options->images, &options->xen, &options->guests}) {
    for (const std::string& text : *texts) AddRead(text, options->directory, named);
  }
  AddRead(options->symfs, options->directory, named);
  if (!options->debuginfod.empty()) named.server = true;
}

fs::path DirectoryOf(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

// The values of an option; none where the command does not have it.
std::vector<std::string> ValuesOf(Command command, const std::string& option) {
  const std::optional<Option> found = command.FindOption(option);
  return found ? found->Words() : std::vector<std::string>();
}

NamedFiles NamedBy(Command command) {
  NamedFiles named;
  for (const Option& option : command.Options()) {
    if (std::ranges::find(option.LongNames(), "output") != option.LongNames().end()) continue;
    for (const std::string& text : option.Words()) {
      AddRead(text, "", named);
      AddStoreServer(text, named);
    }
  }
  AddRead("xenoscope.xeno", "", named);  // the default
  const std::optional<Option> shared = command.FindOption("--shared");
  if (shared && shared->IsGiven()) AddRead(kSharedStore, "", named);
  for (const std::string& file : SymbolConfigFiles()) AddConfigured(file, named);
  for (const std::string& file : ValuesOf(command, "--config")) AddConfigured(file, named);
  for (const std::string& file : ValuesOf(command, "--output")) {
    named.write.push_back(DirectoryOf(file));
  }
  // Stores that change: "sqlite:FILE".
  const std::string store = command.Name() == "push" ? "--to" : "URL";
  if (command.Name() == "push" || command.Name() == "prune") {
    for (const std::string& url : ValuesOf(command, store)) {
      if (url.starts_with(store::kClickHouseScheme)) continue;
      named.write.push_back(DirectoryOf(url.substr(url.find(':') + 1)));
    }
  }
  for (const std::string& target : ValuesOf(command, "--metrics")) {
    if (NamesPort(target)) {
      named.listens = true;
    } else {
      named.write.push_back(DirectoryOf(target));
    }
  }
  const bool makes_one = command.Name() == "archive" || command.Name() == "unpack";
  if (makes_one && named.write.empty()) named.write.emplace_back(".");
  const std::vector<std::string> servers = ValuesOf(command, "--debuginfod");
  if (!servers.empty()) named.server = servers != std::vector<std::string>{"none"};
  if (!command.FindOption("--debuginfod")) {
    named.server = false;
  } else if (servers.empty() && !Environment("DEBUGINFOD_URLS").empty()) {
    named.server = true;
  }
  return named;
}

std::vector<std::string> EntriesOf(const std::string& directory) {
  std::vector<std::string> entries;
  std::error_code error;
  for (fs::directory_iterator at(directory, error), end; !error && at != end; at.increment(error)) {
    entries.push_back(at->path().filename());
  }
  return entries;
}

void ReadVisible(Landlock& allowed, const std::string& directory) {
  for (const std::string& name : EntriesOf(directory)) {
    if (!name.starts_with('.')) allowed.Read(fs::path(directory) / name);
  }
}

void AllowSystem(Landlock& allowed) {
  for (const std::string& name : EntriesOf("/")) {
    if (std::ranges::find(kPrivateDirectories, name) == kPrivateDirectories.end())
      allowed.Read("/" + name);
  }
  for (const char* path : kSystemFiles) allowed.Read(path);
  for (const char* device : kWritableDevices) allowed.Write(device);
  allowed.Read("/dev/urandom");
}

// Allows the directory of a file that was named, or the working directory.
void ReadAround(Landlock& allowed, const fs::path& directory, const std::string& home) {
  std::error_code error;
  const fs::path at = fs::canonical(directory, error);
  if (error || at == "/") return;
  const bool is_top = at.parent_path() == "/";
  if (at == home || at == "/root" || at.parent_path() == "/home") {
    ReadVisible(allowed, at);
  } else if (!is_top ||
             std::ranges::find(kPrivateDirectories, at.filename()) == kPrivateDirectories.end()) {
    allowed.Read(at);
  }
}

void AllowHome(Landlock& allowed, const fs::path& home) {
  ReadVisible(allowed, home);
  for (const char* directory : kProgramDirectories) allowed.Read(home / directory);
}

void AllowHomes(Landlock& allowed) {
  AllowHome(allowed, "/root");
  for (const std::string& name : EntriesOf("/home")) AllowHome(allowed, "/home/" + name);
}

// Makes the directory first: a rule needs one that exists.
void AllowCache(Landlock& allowed, const fs::path& directory) {
  constexpr mode_t kOwnerOnly = 0700;
  std::error_code ignored;
  fs::create_directories(directory.parent_path(), ignored);
  mkdir(directory.c_str(), kOwnerOnly);
  allowed.Write(directory);
}

void AllowCaches(Landlock& allowed, Command command, bool server) {
  const auto own = symbolizer::IndexCache::DefaultDirectory();
  if (!own) return;
  if (command.FindOption("--no-cache") && ValuesOf(command, "--no-cache").empty()) {
    AllowCache(allowed, *own);
  }
  if (!server) return;
  // debuginfod_find_debuginfo(3)
  AllowCache(allowed, fs::path(*own).parent_path() / "debuginfod_client");
  allowed.Write(Environment("HOME") + "/.debuginfod_client_cache");
  allowed.Write(Environment("DEBUGINFOD_CACHE_PATH"));
}

// sudo(8) says who called it.
struct User {
  uid_t id = 0;
  gid_t group = 0;
};

std::optional<uint32_t> NumberIn(const char* variable) {
  const std::string text = Environment(variable);
  uint32_t number = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || rest != end || number == 0) return std::nullopt;
  return number;
}

std::optional<User> UserBehindSudo() {
  const auto id = NumberIn("SUDO_UID");
  const auto group = NumberIn("SUDO_GID");
  if (geteuid() != 0 || !id || !group) return std::nullopt;
  return User{*id, *group};
}

bool MayRead(const std::string& path) {
  std::error_code ignored;
  const int mode = fs::is_directory(path, ignored) ? R_OK | X_OK : R_OK;
  return faccessat(AT_FDCWD, path.c_str(), mode, AT_EACCESS) == 0;
}

bool MayWrite(const std::string& directory) {
  return faccessat(AT_FDCWD, directory.c_str(), R_OK | W_OK | X_OK, AT_EACCESS) == 0;
}

void DropCapabilities() {
  constexpr uint32_t kKeptCapabilities = 1U << CAP_DAC_OVERRIDE | 1U << CAP_DAC_READ_SEARCH;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> kept{};
  kept.front().effective = kept.front().permitted = kKeptCapabilities;
  syscall(SYS_capset, &header, kept.data());
}

// Becomes the user for good. Returns whether that was possible.
bool BecomeUser(const User& user, const NamedFiles& named) {
  const passwd* const entry = getpwuid(user.id);  // NOLINT(concurrency-mt-unsafe): no threads yet
  const bool changed = entry != nullptr && initgroups(entry->pw_name, user.group) == 0 &&
                       setegid(user.group) == 0 && seteuid(user.id) == 0;
  const bool may_all = changed && std::ranges::all_of(named.read, MayRead) &&
                       std::ranges::all_of(named.write, MayWrite);
  const std::string home = entry == nullptr ? "" : entry->pw_dir;
  if (seteuid(0) != 0 || setegid(0) != 0) return false;
  if (!may_all) {
    setgroups(0, nullptr);
    return false;
  }
  if (setresgid(user.group, user.group, user.group) != 0 ||
      setresuid(user.id, user.id, user.id) != 0) {
    return false;
  }
  setenv("HOME", home.c_str(), 1);  // NOLINT(concurrency-mt-unsafe): no threads yet
  return true;
}

}  // namespace

void Confine(Command command) {
  NamedFiles named = NamedBy(command);
  if (const auto user = UserBehindSudo()) {
    if (BecomeUser(*user, named)) {
      named = NamedBy(command);  // with the user's configuration
    } else {
      DropCapabilities();
    }
  }
  const bool has_child = command.Name() == "top";
  Landlock allowed(
      {.network = named.server || named.store_server || named.listens, .signals = has_child});
  const std::string home = Environment("HOME");
  AllowSystem(allowed);
  AllowHomes(allowed);
  AllowCaches(allowed, command, named.server);
  allowed.Read(home + "/.terminfo");
  ReadAround(allowed, ".", home);
  for (const std::string& path : named.read) {
    allowed.Read(path);
    ReadAround(allowed, DirectoryOf(path), home);  // its debug file
  }
  for (const std::string& path : named.write) allowed.Write(path);
  const std::string temporary = Environment("TMPDIR");
  allowed.Write(temporary.empty() ? "/tmp" : temporary);
  allowed.Restrict();
}

}  // namespace xenoscope::cli
