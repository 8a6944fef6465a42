// A source takes samples during a recording. Each source is a class that implements this interface,
// and a branch in OpenSources (sampler/sources.h).
//
//   opened --Start--> sampling --Collect, when due--> sampling --Stop--> stopped --Close--> closed
//
// The sources of a recording stop in the order in which they were opened, and start and close in
// the opposite order. So a source that leads others (xenoprof's in dom0) starts last, stops first,
// and closes when the others have let go.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"
#include "base/tsc.h"
#include "recording/info.h"
#include "recording/sample_writer.h"
#include "recording/writer.h"

namespace xenoscope::sampler {

// The interface of a source.
class Source {
 public:
  // Closes, unless Close was called.
  virtual ~Source() = default;

  // Returns its entry in recording.json: SourceInfo::name names its file.
  [[nodiscard]] virtual recording::SourceInfo Info() const = 0;
  // Returns the events that its samples count, in the order of the samples' numbers. After Stop
  // with the periods as they really were.
  [[nodiscard]] virtual std::vector<recording::EventInfo> Events() const = 0;
  // Returns the role of the domain in it; kNone: it is not sampled.
  [[nodiscard]] virtual recording::Role RoleOf(DomainId domain) const = 0;
  // Returns what the user should know about its samples, other than errors: one line each.
  [[nodiscard]] virtual std::vector<std::string> Notes() const { return {}; }

  // Takes part in a session that a source of another domain leads, which has just listed this
  // domain. May be called several times before Start. True: it was not ready, and is to be listed
  // again.
  virtual absl::StatusOr<bool> Enlist() {
    return absl::FailedPreconditionError("it samples by itself");
  }
  // Does the part of Start that may take long, so that Start itself is quick. Where it was not
  // called, Start does it.
  virtual absl::Status PrepareStart() { return absl::OkStatus(); }
  virtual absl::Status Start() = 0;
  // Returns when Collect is to be called next. The later the call, the coarser the samples' times.
  [[nodiscard]] virtual std::chrono::steady_clock::time_point Due() const = 0;
  // Hands on the samples that there are; after Stop, what that left.
  virtual absl::Status Collect(recording::SampleWriter& writer) = 0;
  // Returns whether Collect or Stop left something that can wait, as the writer had no room for it.
  [[nodiscard]] virtual bool HasMore() const { return false; }
  // Takes in a domain that was created during sampling. The error says why it cannot.
  virtual absl::Status OnDomainCreated(const recording::DomainInfo& domain) = 0;
  // Notes that a domain has gone during sampling: it sends nothing and answers nothing any more.
  virtual void OnDomainDestroyed(DomainId /*domain*/) {}
  // Ends sampling, and hands on the remaining samples. While there is more, the source is not
  // closed and Collect goes on; what is left when it closes is counted as lost.
  virtual absl::Status Stop(recording::SampleWriter& writer) = 0;
  // Between Start and Stop, on another thread than the source's: saves what readers of a recording
  // that is being made need beside samples, as far as it is new. Save replaces it.
  virtual absl::Status SaveSoFar(const recording::Writer& /*writer*/) { return absl::OkStatus(); }
  // Returns whether Stop and Save wait for a guest. Such sources stop after the others, and in
  // parallel, so that no guest delays another one or the end of the trace.
  [[nodiscard]] virtual bool WaitsForGuest() const { return false; }
  // After Stop: adds to the recording what it has beside samples, and describes that in `info`.
  virtual absl::Status Save(const recording::Writer& /*writer*/,
                            recording::RecordingInfo& /*info*/) {
    return absl::OkStatus();
  }
  // Gives back what it holds of the host, in any state. After an error it goes on, and returns the
  // first one.
  virtual absl::Status Close() = 0;

  // Returns the range of time in which it sampled, [started, stopped). Known after Stop.
  [[nodiscard]] virtual TscRange Sampled() const = 0;
  // Returns the accounts of each vCPU: up to now while sampling, complete after Stop.
  [[nodiscard]] virtual std::vector<recording::StreamInfo> Streams() const = 0;
  // Returns the accounts of a kernel's trace that it takes, complete after Stop.
  [[nodiscard]] virtual std::vector<recording::KernelTraceInfo> KernelTraces() const { return {}; }
  // Returns what did not go as Notes announced, one line each, for the user: after Close, and for a
  // source that waits for a guest at any time.
  [[nodiscard]] virtual std::vector<std::string> FinalNotes() const { return {}; }
};

}  // namespace xenoscope::sampler
