// An agent of a guest and the recorder that shares a slice with it, over a socket in place of Xen's
// channel, for tests/system/shared.test:
//
//   share_over_socket SLICE STORE [MOST_SLICES]
//
// SLICE is what `xenoscope push --share DOMAIN --to slice:SLICE` writes, or anything else. The
// agent keeps it in STORE. The exit status is 0 if it says that it has.
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>

#include "base/error.h"
#include "cli/shared_store.h"
#include "sampler/agent/agent_server.h"
#include "sampler/agent/fd_channel.h"
#include "sampler/agent/send_shared.h"
#include "sampler/xen/host.h"

namespace {

using namespace xenoscope;  // NOLINT(google-build-using-namespace): a program of its own

[[noreturn]] void Serve(int socket, const std::string& store, const cli::SharedLimits& limits) {
  sampler::agent::ServerParts parts;
  parts.hello.vcpus = 1;
  parts.read_tsc = sampler::ReadTsc;
  parts.keep_shared = [&](Bytes bytes) { return cli::KeepShared(store, bytes, limits); };
  sampler::FdChannel channel(socket);
  const absl::Status served = sampler::agent::Server(channel, parts).Serve(sampler::kNoFile);
  std::_Exit(served.ok() ? 0 : 1);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::ifstream file(argv[1], std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  cli::SharedLimits limits;
  if (argc > 3) {
    const std::string_view most = argv[3];
    std::from_chars(most.data(), most.data() + most.size(), limits.slices);
  }
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) return 2;
  const pid_t guest = fork();
  if (guest == 0) {
    close(ends[0]);
    Serve(ends[1], argv[2], limits);
  }
  close(ends[1]);
  const auto connect = [&](DomainId) -> absl::StatusOr<std::unique_ptr<sampler::Channel>> {
    return std::make_unique<sampler::FdChannel>(ends[0]);
  };
  recording::DomainInfo domain;
  domain.id = DomainId{1};
  domain.vcpus = 1;
  const absl::Status sent =
      sampler::SendShared(domain, AsBytes(bytes), connect, {.read_tsc = sampler::ReadTsc});
  if (!sent.ok()) fmt::print(stderr, "{}\n", Message(sent));
  int status = 0;
  waitpid(guest, &status, 0);
  return sent.ok() && status == 0 ? 0 : 1;
}
