// The guest's half of a recording: does what dom0's recorder asks for over a channel.
//
//   hello --> idle --prepare--> ready [--enlist--> ready] --start--> sampling --stop--> idle
//   bye, or the channel's end, in any state --> over
//
// In every state it answers pings, and sends files of the kernel's symbols. It samples only between
// start and stop, and nothing but what a source (sampler/source.h) makes of this guest.
#pragma once

#include <cstddef>
#include <functional>
#include <istream>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/tsc.h"
#include "recording/sample_writer.h"
#include "sampler/agent_link.h"
#include "sampler/agent_messages.h"
#include "sampler/channel.h"
#include "sampler/source.h"

namespace xenoscope::sampler::agent {

struct ServerParts {
  Hello hello;  // what it says of itself
  std::function<absl::StatusOr<std::unique_ptr<Source>>(const Prepare&)> open_source;
  std::function<Tsc()> read_tsc;
  std::string kallsyms = "/proc/kallsyms";
  std::string modules = "/proc/modules";
  std::string proc = "/proc";  // of /tmp/perf-PID.map
  std::string tmp = "/tmp";
};

class Server {
 public:
  // Both outlive the server.
  Server(Channel& channel, const ServerParts& parts) : link_(channel), parts_(parts) {}

  // Serves one recorder until it says bye or goes (OK), or `end`, an open file, can be read (OK).
  // Errors: the recorder said what no recorder says.
  absl::Status Serve(int end);
  // Whether a recorder came at all.
  bool greeted() const { return greeted_; }

 private:
  absl::Status Handle(const AnyMessage& message);
  absl::Status MakeReady(const Prepare& prepare);
  absl::StatusOr<bool> TakePart();
  absl::Status Begin();
  void Collect();
  void End();
  void QueueSamples();
  void SendFile(FileKind kind);
  void Send(FileKind kind, std::istream& file);

  Link link_;
  const ServerParts& parts_;
  std::unique_ptr<Source> source_;
  recording::SampleWriter writer_ = recording::SampleWriter::InMemory();
  bool sampling_ = false;
  bool greeted_ = false;
  bool over_ = false;
};

}  // namespace xenoscope::sampler::agent
