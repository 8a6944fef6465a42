// The guest's side of a recording: it does what dom0's recorder asks for over a channel.
//
//   hello --> idle --prepare--> ready [--enlist--> ready] --start--> sampling
//   sampling --stop--> ending --what was left is sent--> idle
//   bye, or the channel's end, in any state --> over
//
// In every state it answers pings, sends files of the kernel's symbols, and counts events. While it
// is idle it also keeps what the recorder shares with the guest's owner. It samples only between
// start and stop, and sends only what a source (sampler/source.h) makes of this guest. What waits
// for a recorder that does not read is bounded: beyond the bound no message is handled, and samples
// stay in the kernel's rings, which count what they lose.
//
// What is sent between two answers to pings is bounded, too (kMaxBytesBetweenAnswers), as the
// recorder has to keep it. Of a guest whose kernel has more events of threads, these wait in the
// kernel's rings for the next ping. Samples cannot wait, as an answer promises that no older ones
// follow it. Those that come when nothing is left of the bound are dropped: their accounts have
// them, so that the recorder counts them as lost.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/tsc.h"
#include "recording/sample_writer.h"
#include "sampler/agent/agent_link.h"
#include "sampler/agent/agent_messages.h"
#include "sampler/agent/channel.h"
#include "sampler/perf/perf_counters.h"
#include "sampler/perf/perf_map_watch.h"
#include "sampler/source.h"

namespace xenoscope::sampler::agent {

// What a server works with.
struct ServerParts {
  Hello hello;  // the server's own hello
  // Opens what samples; the server reads what `perf_maps` has kept meanwhile.
  std::function<absl::StatusOr<std::unique_ptr<Source>>(const Prepare&,
                                                        std::shared_ptr<PerfMapWatch> perf_maps)>
      open_source;
  // Opens counters of events as after `stat -e`, on all CPUs.
  std::function<absl::StatusOr<PerfCounters>(const std::vector<std::string>&)> open_counters;
  std::function<Tsc()> read_tsc;
  std::string kallsyms = "/proc/kallsyms";
  std::string modules = "/proc/modules";
  std::string proc = "/proc";  // directory of processes, for /tmp/perf-PID.map
  std::string tmp = "/tmp";
  bool asks_java_vms = false;  // whether Java machines are asked for their functions meanwhile
  // What the guest's kernel recorded of its boot (sampler/ftrace/boot_trace.h), or why it did not.
  absl::StatusOr<std::vector<std::byte>> boot_trace = absl::NotFoundError("it was not taken");
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
  // Keeps what a recorder shares with the guest's owner. The bytes may be anything. Empty: nothing
  // is kept.
  std::function<absl::Status(Bytes)> keep_shared{};
};

// Time without a message after which a recorder is considered gone. A recorder pings several times
// a second.
inline constexpr std::chrono::minutes kIdleTimeout{5};

// The server of one recorder.
class Server {
 public:
  // `channel` and `parts` must outlive the server.
  Server(Channel& channel, const ServerParts& parts)
      : link_(channel),
        parts_(parts),
        perf_maps_(std::make_shared<PerfMapWatch>(parts.proc, parts.tmp)) {
    if (parts.asks_java_vms) perf_maps_->AskJavaVms();
  }

  // Serves one recorder until it says bye or goes, or until the open file `end` can be read (OK in
  // all three cases); what was sampled up to then is sent. Errors: the recorder broke the protocol;
  // DeadlineExceeded: it was silent for kIdleTimeout.
  absl::Status Serve(int end);
  // Returns whether the recorder said bye. One that did not may have gone with its domain.
  [[nodiscard]] bool said_bye() const { return said_bye_; }
  // Returns whether a recorder came at all.
  [[nodiscard]] bool greeted() const { return greeted_; }

 private:
  // Returns whether so little waits to be sent that the recorder may ask for more.
  [[nodiscard]] bool HasRoom() const;
  // Handles the messages that have come; stops early when the recorder has to read first.
  absl::Status HandleAll();
  absl::Status Handle(const AnyMessage& message);
  absl::Status MakeReady(const Prepare& prepare);
  absl::StatusOr<bool> JoinXenoprof();
  absl::Status Begin();
  absl::Status SendCounts(const Count& count);
  // Takes a part of what is shared. Errors: it is too much.
  absl::Status TakeShare(const Share& share);
  // Keeps all of it.
  absl::Status KeepShared(Bytes bytes);
  // Returns the bytes of what can wait that may be queued now.
  [[nodiscard]] size_t Room() const;
  // Whether what is left is given up, as it takes too long or is too much for a recorder.
  [[nodiscard]] bool EndIsOver() const;
  // Whether the source has more of it, and there is room for a good part.
  [[nodiscard]] bool CanGoOn() const;
  // Hands on what the source has, as Source::Collect or Source::Stop (`how`) do.
  absl::Status TakeFromSource(absl::Status (Source::*how)(recording::SampleWriter&));
  void Collect();
  // Stops sampling. After what is left come the accounts.
  void BeginEnd();
  // Sends more of what is left; after the last of it, or when it takes too long, the accounts.
  void GoOnEnding();
  void SendAccounts();
  // Returns whether `end` can be read. While it samples, what is left is sent first, for
  // kLongestFarewell at most.
  [[nodiscard]] bool IsOver(int end);
  // Stops what the recorder has left behind.
  void Abandon();
  void QueueSamples();
  void OpenFile(FileKind kind);
  // Queues the next parts of the requested file, as far as the recorder reads.
  void SendParts();
  void Wait(int end);

  Link link_;
  const ServerParts& parts_;
  std::shared_ptr<PerfMapWatch> perf_maps_;
  std::unique_ptr<Source> source_;
  std::optional<PerfCounters> counters_;
  std::vector<std::byte> shared_;  // the parts of what is shared that have come
  struct FileTransfer {
    FileKind kind;
    std::unique_ptr<std::istream> content;
  };
  std::optional<FileTransfer> file_transfer_;
  std::chrono::steady_clock::time_point last_message_at_;  // time of the recorder's last message
  recording::SampleWriter writer_ = recording::SampleWriter::InMemory();
  size_t since_answer_ = 0;    // bytes of chunks since the last answer
  bool said_dropped_ = false;  // the recorder knows that samples are dropped
  bool sampling_ = false;
  bool ending_ = false;      // between the request to stop and the accounts
  size_t ending_bytes_ = 0;  // bytes of chunks since then
  std::chrono::steady_clock::time_point ending_since_;
  // Nothing: this process is not to end.
  std::optional<std::chrono::steady_clock::time_point> farewell_until_;
  bool greeted_ = false;
  bool said_bye_ = false;
};

}  // namespace xenoscope::sampler::agent
