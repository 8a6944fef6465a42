// Writes a trace and its samples as a processed profile of the Firefox Profiler
// (github.com/firefox-devtools/profiler, docs-developer/CHANGELOG-formats.md), version 60.
//
// A domain is a process, and a vCPU one of its threads, whose markers are its VM exits, its waits
// for a pCPU, and its hypercalls and traps. A sample whose time is an instant is one of that
// thread. A sample that has a bracket instead belongs to a thread of its own, "d1v0 (drained)", at
// the end of the bracket, where it was found; brackets are markers of that thread. The category of
// a frame is its mode; that of a function of Xen has the VM exit that Xen handled as its
// subcategory. Times are milliseconds since the trace began.
//
// Memory: at most kMostMarkers markers, the different stacks, and what SampleSpool keeps of
// samples.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "base/resolver.h"
#include "base/string_interner.h"
#include "base/tsc.h"
#include "correlate/pipeline_observer.h"
#include "correlate/stacks.h"
#include "report/export/sample_spool.h"
#include "report/export/sink_text.h"
#include "report/profile/profile_view.h"

namespace xenoscope::report {

// A writer of a processed profile. It observes the pipeline and gives the text to a sink.
class FirefoxWriter final : public correlate::PipelineObserver {
 public:
  // What the Firefox Profiler shows without long waits; markers beyond are counted in the profile.
  static constexpr uint64_t kMostMarkers = 1'000'000;

  using Sink = SinkText::Sink;

  // The report and the resolver must outlive the writer. The report must have clock, vendor and
  // names before the first item. `stacks` says what their frames are.
  FirefoxWriter(const ProfileReport& report, Resolver& resolver, correlate::StackOptions stacks)
      : report_(report), resolver_(resolver), stacks_(std::move(stacks)) {}

  void OnRecord(const trace::Record& record) override;
  void OnPlaced(const correlate::PlacedSample& placed) override;
  void OnUnplaced(const recording::Sample& /*sample*/, correlate::UnplacedReason /*why*/) override {
  }
  void OnTraced(VcpuRef /*vcpu*/, correlate::Context /*context*/,
                correlate::ContextTime /*time*/) override {}

  // Writes the profile. Called once, when the report is complete. `title` names the recording.
  // Errors: the sink's first one; those of SampleSpool.
  absl::Status Write(const std::string& title, const Sink& sink);

 private:
  // Indices into the list of categories.
  enum class Category : uint8_t { kOther, kUser, kKernel, kXen, kWaiting };
  enum class MarkerKind : uint8_t { kExit, kWait, kMark, kDrain };

  struct Marker {
    Tsc begin;
    Tsc end;
    uint32_t name = 0;  // in texts_
    MarkerKind kind = MarkerKind::kExit;
  };
  struct Thread {
    VcpuRef vcpu;
    bool drained = false;
    uint32_t number = 0;  // in samples_
    std::vector<Marker> markers;
    TscRange bracket;  // the last one of a thread of drained samples
  };
  // A frame and the subcategory of its category.
  struct Frame {
    uint32_t function = 0;
    Category category = Category::kOther;
    uint32_t subcategory = 0;
    bool operator==(const Frame&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Frame& frame) {
      return H::combine(std::move(h), frame.function, frame.category, frame.subcategory);
    }
  };

  void OnRunstateInterval(const correlate::RunstateInterval& interval) override;
  void OnSegment(const correlate::Segment& segment) override;
  void OnMark(const correlate::Mark& mark) override;

  [[nodiscard]] static Category CategoryOf(Mode mode);
  Thread& ThreadOf(VcpuRef vcpu, bool drained);
  void AddMarker(VcpuRef vcpu, TscRange range, std::string_view name, MarkerKind kind);
  // Returns the number of the stack with the sample's frames.
  uint32_t StackOf(const correlate::PlacedSample& placed);
  uint32_t FunctionNumber(const correlate::StackFrame& frame);
  uint32_t SubcategoryOf(const std::optional<correlate::Context>& context);
  [[nodiscard]] double Milliseconds(Tsc at) const;

  void WriteMeta(const std::string& title, SinkText& out) const;
  void WriteTables(SinkText& out) const;
  void WriteThread(Thread& thread, bool first_of_domain, SinkText& out) const;
  void WriteSamples(const Thread& thread, SinkText& out) const;
  void WriteMarkers(const Thread& thread, SinkText& out) const;

  const ProfileReport& report_;
  Resolver& resolver_;
  correlate::Stacks stacks_;
  std::optional<Tsc> zero_;
  uint64_t markers_ = 0;
  uint64_t left_out_ = 0;  // markers beyond kMostMarkers
  StringInterner texts_;
  absl::flat_hash_map<std::pair<VcpuRef, bool>, uint32_t> thread_index_;
  std::vector<Thread> threads_;
  SampleSpool samples_;
  absl::Status spooled_;  // the first error of samples_
  // Tables, each by number.
  std::vector<uint32_t> subcategories_;                   // of Xen: names in texts_
  std::vector<std::pair<uint32_t, uint32_t>> functions_;  // names of function and image in texts_
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> function_index_;
  std::vector<uint32_t> images_;  // names in texts_
  absl::flat_hash_map<uint32_t, uint32_t> image_index_;
  std::vector<Frame> frames_;
  absl::flat_hash_map<Frame, uint32_t> frame_index_;
  // The frame and the stack that calls it plus 1; 0: none.
  std::vector<std::pair<uint32_t, uint32_t>> chain_;
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> chain_index_;
  // By stack of `stacks_` and subcategory.
  absl::flat_hash_map<std::pair<uint32_t, uint32_t>, uint32_t> stack_index_;
};

}  // namespace xenoscope::report
