// An agent of this Linux and its recorder, over a socket in place of Xen's channel, while a command
// runs: for `scripts/bench agent`.
//
//   agent_over_socket CPU RECORDING EVENTS STEP COMMAND...
//
// The agent is pinned to CPU, as the command is by its caller; the recorder is not. EVENTS are as
// after `record --guest-events`, or empty. STEP is 0, or so many milliseconds that the recorder
// lets pass between two readings: one of a dom0 that has no time. The result is one line of JSON on
// stdout, and a recording of domain 1 without a trace of Xen.
#include <fmt/format.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "base/error.h"
#include "recording/info.h"
#include "recording/writer.h"
#include "sampler/agent/agent.h"
#include "sampler/agent/agent_source.h"
#include "sampler/agent/fd_channel.h"
#include "sampler/xen/host.h"

namespace {

using namespace xenoscope;  // NOLINT(google-build-using-namespace): a program of its own
using std::chrono::steady_clock;

[[noreturn]] void Fail(const absl::Status& status) {
  fmt::print(stderr, "agent_over_socket: {}\n", Message(status));
  std::exit(1);
}

// The rate of the TSC in Hz, which only Xen tells exactly: recorder and agent have the same.
uint64_t MeasureTsc() {
  constexpr std::chrono::milliseconds kLength(100);
  const Tsc begin = sampler::ReadTsc();
  const steady_clock::time_point since = steady_clock::now();
  std::this_thread::sleep_for(kLength);
  const std::chrono::duration<double> time = steady_clock::now() - since;
  return static_cast<uint64_t>(static_cast<double>(sampler::ReadTsc() - begin) / time.count());
}

// The process of the agent: it ends when the recorder says bye.
[[noreturn]] void Serve(int socket, int cpu, uint64_t tsc_hz) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  sched_setaffinity(0, sizeof cpus, &cpus);
  sampler::agent::ServerParts parts = sampler::AgentParts(true, "xenoscope");
  parts.hello.tsc_hz = tsc_hz;
  parts.hello.tsc_native = true;
  sampler::FdChannel channel(socket);
  sampler::agent::Server server(channel, parts);
  const absl::Status served = server.Serve(sampler::kNoFile);
  if (!served.ok()) Fail(served);
  std::_Exit(0);
}

pid_t Run(char** command) {
  const pid_t pid = fork();
  if (pid == 0) {
    execvp(command[0], command);
    std::_Exit(127);
  }
  return pid;
}

double Seconds(const timeval& time) {
  constexpr double kMicro = 1e-6;
  return static_cast<double>(time.tv_sec) + kMicro * static_cast<double>(time.tv_usec);
}

// The processor time of a process that has ended, in seconds. Errors end this program.
double Await(pid_t pid) {
  int status = 0;
  rusage usage{};
  if (wait4(pid, &status, 0, &usage) != pid || status != 0) {
    Fail(absl::InternalError("the command or the agent failed"));
  }
  return Seconds(usage.ru_utime) + Seconds(usage.ru_stime);
}

absl::StatusOr<std::unique_ptr<sampler::AgentSource>> Open(int socket, const std::string& events,
                                                           uint64_t tsc_hz) {
  sampler::AgentRequest request;
  request.how.events = {"cpu-clock@1"};
  request.how.threads = true;
  if (!events.empty()) request.how.kernel_events = absl::StrSplit(events, ',');
  recording::DomainInfo domain;
  domain.id = DomainId{1};
  domain.name = "guest";
  domain.type = recording::DomainType::kPv;
  domain.vcpus = static_cast<uint32_t>(sysconf(_SC_NPROCESSORS_CONF));
  const auto connect = [socket](DomainId) -> absl::StatusOr<std::unique_ptr<sampler::Channel>> {
    return std::make_unique<sampler::FdChannel>(socket);
  };
  return sampler::AgentSource::Open(domain, request, connect,
                                    {.tsc_hz = tsc_hz, .read_tsc = sampler::ReadTsc});
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int kCommand = 5;
  if (argc <= kCommand) {
    Fail(absl::InvalidArgumentError("wants CPU RECORDING EVENTS STEP COMMAND..."));
  }
  const std::chrono::milliseconds step(std::atoi(argv[4]));
  std::array<int, 2> sockets{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets.data()) != 0) {
    Fail(ErrnoError(errno, "socketpair"));
  }
  const uint64_t tsc_hz = MeasureTsc();
  const pid_t agent = fork();
  if (agent == 0) {
    close(sockets[0]);
    Serve(sockets[1], std::atoi(argv[1]), tsc_hz);
  }
  close(sockets[1]);
  auto source = Open(sockets[0], argv[3], tsc_hz);
  if (!source.ok()) Fail(source.status());
  for (const std::string& note : (*source)->Notes()) fmt::print(stderr, "{}\n", note);
  auto recorded = recording::Writer::Create(argv[2]);
  if (!recorded.ok()) Fail(recorded.status());
  auto writer = recorded->CreateSamples((*source)->Info().name);
  if (!writer.ok()) Fail(writer.status());
  absl::Status status = (*source)->NumberEvents(0);
  status.Update((*source)->Start());
  const steady_clock::time_point begin = steady_clock::now();
  const pid_t command = Run(argv + kCommand);
  siginfo_t ended{};
  while (status.ok() && ended.si_pid == 0) {
    status.Update((*source)->Collect(*writer));
    status.Update(writer->Flush());
    std::this_thread::sleep_until(std::max((*source)->Due(), steady_clock::now() + step));
    waitid(P_PID, static_cast<id_t>(command), &ended, WEXITED | WNOHANG | WNOWAIT);
  }
  const std::chrono::duration<double> wall = steady_clock::now() - begin;
  const double command_s = Await(command);
  status.Update((*source)->Stop(*writer));
  status.Update(writer->Flush());
  status.Update((*source)->Close());
  if (!status.ok()) Fail(status);
  for (const std::string& note : (*source)->FinalNotes()) fmt::print(stderr, "{}\n", note);
  recording::RecordingInfo info;
  info.host.clock_hz = tsc_hz;
  info.domains = {(*source)->domain()};
  info.sources = {(*source)->Info()};
  info.events = (*source)->Events();
  info.streams = (*source)->Streams();
  info.kernel_traces = (*source)->KernelTraces();
  info.state = recording::State::kComplete;
  if (const absl::Status written = recorded->WriteInfo(info); !written.ok()) Fail(written);
  uint64_t read = 0;
  uint64_t lost = 0;
  for (const recording::KernelTraceInfo& trace : (*source)->KernelTraces()) {
    read += trace.read;
    lost += trace.lost;
  }
  const nlohmann::ordered_json result{{"wall_s", wall.count()},
                                      {"command_s", command_s},
                                      {"agent_s", Await(agent)},
                                      {"events", read},
                                      {"lost", lost},
                                      {"bytes", writer->bytes_written()},
                                      {"given_up", !(*source)->session().status().ok()}};
  fmt::print("{}\n", result.dump());
  return 0;
}
