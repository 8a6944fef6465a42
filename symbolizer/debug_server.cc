#include "symbolizer/debug_server.h"

#include <elfutils/debuginfod.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "base/error.h"
#include "base/shared_library.h"
#include "symbolizer/elf/elf_file.h"

namespace xenoscope::symbolizer {
namespace {

constexpr const char* kLibrary = "libdebuginfod.so.1";
constexpr const char* kTimeoutSeconds = "10";

}  // namespace

// The library, and a connection to its servers.
class DebugServer::Client {
 public:
  static absl::StatusOr<std::unique_ptr<Client>> Open() {
    auto client = std::make_unique<Client>();
    XENOSCOPE_ASSIGN_OR_RETURN(const SharedLibrary library,
                               SharedLibrary::Load(kLibrary, "debug servers"));
    XENOSCOPE_RETURN_IF_ERROR(library.Find("debuginfod_begin", client->begin_, "debuginfod_end",
                                           client->end_, "debuginfod_find_debuginfo",
                                           client->find_debuginfo_, "debuginfod_find_executable",
                                           client->find_executable_));
    client->client_ = client->begin_();
    if (client->client_ == nullptr) return ExhaustedError("{} does not start", kLibrary);
    return client;
  }

  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  ~Client() {
    if (client_ != nullptr) end_(client_);
  }

  // Returns the path of the file in the library's cache, or a negative errno.
  std::pair<int, std::string> Find(const std::string& build_id, bool program) {
    const std::string bytes = absl::HexStringToBytes(build_id);
    const std::vector<unsigned char> id(bytes.begin(), bytes.end());
    char* path = nullptr;
    const int fd = (program ? find_executable_ : find_debuginfo_)(
        client_, id.data(), static_cast<int>(id.size()), &path);
    if (fd < 0) return {fd, {}};
    close(fd);
    std::pair<int, std::string> found = {0, path};
    free(path);  // NOLINT: the library allocated it
    return found;
  }

 private:
  debuginfod_client* client_ = nullptr;
  decltype(debuginfod_begin)* begin_ = nullptr;
  decltype(debuginfod_end)* end_ = nullptr;
  decltype(debuginfod_find_debuginfo)* find_debuginfo_ = nullptr;
  decltype(debuginfod_find_executable)* find_executable_ = nullptr;
};

namespace {

bool IsBuildId(const std::string& text) {
  constexpr size_t kLongest = 128;  // digits
  return !text.empty() && text.size() <= kLongest && text.size() % 2 == 0 &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isxdigit(c) != 0; });
}

}  // namespace

DebugServer::DebugServer(const std::string& urls, bool progress) {
  // NOLINTBEGIN(concurrency-mt-unsafe): there are no threads yet
  setenv(DEBUGINFOD_URLS_ENV_VAR, urls.c_str(), /*overwrite=*/1);
  setenv(DEBUGINFOD_TIMEOUT_ENV_VAR, kTimeoutSeconds, /*overwrite=*/0);
  if (progress) setenv(DEBUGINFOD_PROGRESS_ENV_VAR, "1", /*overwrite=*/0);
  // NOLINTEND(concurrency-mt-unsafe)
}

DebugServer::~DebugServer() = default;

absl::StatusOr<FileContent> DebugServer::DebugFile(const std::string& build_id) {
  return Find(build_id, /*program=*/false);
}

absl::StatusOr<FileContent> DebugServer::Program(const std::string& build_id) {
  return Find(build_id, /*program=*/true);
}

absl::StatusOr<FileContent> DebugServer::Find(const std::string& build_id, bool program) {
  if (!IsBuildId(build_id)) return InvalidError("{} is not a build-id", build_id);
  XENOSCOPE_RETURN_IF_ERROR(broken_);
  if (client_ == nullptr) {
    auto client = Client::Open();
    if (!client.ok()) return broken_ = client.status();
    client_ = *std::move(client);
  }
  const auto [error, path] = client_->Find(build_id, program);
  if (error == -ENOENT) return NotFoundError("no debug server has {}", build_id);
  if (error != 0) return broken_ = ErrnoError(-error, "debug servers are not used any more");
  XENOSCOPE_ASSIGN_OR_RETURN(FileContent content, FileContent::Open(path));
  XENOSCOPE_ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::OpenAny(content.bytes()));
  if (elf.BuildId() != build_id) {
    return InvalidError("a debug server sent a file of another build for {}", build_id);
  }
  return content;
}

}  // namespace xenoscope::symbolizer
