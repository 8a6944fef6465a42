// A way of taking samples while a recording goes on. Each is a class behind this interface, and a
// branch in OpenSources (sampler/sources.h).
//
//   opened --Start--> sampling --Collect, when due--> sampling --Stop--> stopped --Close--> closed
//
// Those of one recording stop in the order of their opening, and start and close in the opposite
// one. So one that leads others (xenoprof's in dom0) starts last, stops first, and closes when the
// others have let go.
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

class Source {
 public:
  // Closes, when nobody did.
  virtual ~Source() = default;

  // What recording.json says of it: SourceInfo::name names its file.
  virtual recording::SourceInfo Info() const = 0;
  // What its samples count, in the order of the samples' numbers. After Stop with the periods that
  // there really were.
  virtual std::vector<recording::EventInfo> Events() const = 0;
  // The part that the domain has in it; kNone: it is not sampled.
  virtual recording::Role RoleOf(DomainId domain) const = 0;
  // What the user should know of samples taken so, beside errors: one line each.
  virtual std::vector<std::string> Notes() const { return {}; }

  // Takes part in what a source of another domain leads, which has just listed this domain for it.
  // May be asked several times before Start. True: it was not ready, and is to be listed again.
  virtual absl::StatusOr<bool> Enlist() {
    return absl::FailedPreconditionError("it samples by itself");
  }
  virtual absl::Status Start() = 0;
  // When Collect wants to be called next: how late it comes is how coarse the samples are.
  virtual std::chrono::steady_clock::time_point Due() const = 0;
  // Hands on the samples that there are.
  virtual absl::Status Collect(recording::SampleWriter& writer) = 0;
  // Takes in a domain that was created while sampling goes on. The error says why it cannot.
  virtual absl::Status OnDomainCreated(const recording::DomainInfo& domain) = 0;
  // A domain has gone while sampling goes on: nothing more comes of it, and nobody answers for it.
  virtual void OnDomainDestroyed(DomainId /*domain*/) {}
  // Ends sampling, and hands on what was left.
  virtual absl::Status Stop(recording::SampleWriter& writer) = 0;
  // Whether Stop and Save wait for a guest. Such sources stop when the others have, and side by
  // side, so that no guest delays another one or the end of the trace.
  virtual bool WaitsForGuest() const { return false; }
  // After Stop: adds to the recording what it has beside samples, and to `info` what that is.
  virtual absl::Status Save(const recording::Writer& /*writer*/,
                            recording::RecordingInfo& /*info*/) {
    return absl::OkStatus();
  }
  // Gives back what it holds of the host. In any state; goes on after a first error, and returns
  // it.
  virtual absl::Status Close() = 0;

  // When it sampled: [started, stopped). Known after Stop.
  virtual TscRange Sampled() const = 0;
  // The accounts of each vCPU: up to now while sampling, complete after Stop.
  virtual std::vector<recording::StreamInfo> Streams() const = 0;
  // After Close, and of a source that awaits a guest at any time: what went otherwise than Notes
  // had promised, one line each, for the user.
  virtual std::vector<std::string> FinalNotes() const { return {}; }
};

}  // namespace xenoscope::sampler
