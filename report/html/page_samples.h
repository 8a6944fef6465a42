// The samples of an HTML report: when those of its rows were taken, and some of them one by one for
// its timeline. Memory is bounded by the kinds of samples, BinnedSums and kMaxSamples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/ids.h"
#include "base/resolver.h"
#include "base/string_interner.h"
#include "base/tsc.h"
#include "correlate/placing/placed_sample.h"
#include "report/html/page_over_time.h"

namespace xenoscope::report {

class PageSamples final : public correlate::PlacingObserver {
 public:
  // Entries in the page: an instant, or all samples of one bracket. Beyond it, they are thinned.
  static constexpr size_t kMaxSamples = 20'000;

  // The resolver outlives this, and is used by nobody else while samples come.
  explicit PageSamples(Resolver& resolver) : resolver_(resolver), over_time_(resolver) {}

  void OnPlaced(const correlate::PlacedSample& placed) override;
  void OnUnplaced(const recording::Sample& /*sample*/, correlate::UnplacedReason /*why*/) override {
  }
  void OnTraced(VcpuRef /*vcpu*/, correlate::Context /*context*/,
                correlate::ContextTime /*time*/) override {}

  // To be called after the last sample.
  void Finish() { over_time_.Finish(); }
  // When samples were taken.
  [[nodiscard]] const PageOverTime& over_time() const { return over_time_; }
  // Puts the list of samples into the page's timeline (docs/schemas/page.schema.json), which shows
  // the range; `number_of` returns the number there of a vCPU that it shows. O(n log n).
  void AddTo(nlohmann::ordered_json& timeline, TscRange shown,
             const std::function<std::optional<uint32_t>(VcpuRef)>& number_of) const;

 private:
  // An instant of a vCPU, or a bracket.
  struct Entry {
    TscRange when;
    uint32_t vcpu = 0;  // index of vcpus_
    Mode mode = Mode::kUser;
    uint32_t function = 0;  // of the first sample: index of texts_
    uint64_t count = 0;
  };
  struct Vcpu {
    VcpuRef ref;
    TscRange last;                // the last bracket, or instant
    std::optional<size_t> entry;  // its index in entries_, if kept
    // Number of brackets so far, starting at the vCPU's index. If vCPUs are sampled in turn and all
    // started at 0, every sample of some vCPUs would be dropped.
    uint64_t number = 0;
  };

  Vcpu& VcpuOf(VcpuRef ref);
  // Returns the index in texts_ of the function's name.
  uint32_t TextOf(FunctionId function);
  // Drops every second bracket of each vCPU, also of later samples. It is called at most about 64
  // times: then no vCPU has a bracket whose number is a multiple of kept_.
  void Thin();

  Resolver& resolver_;
  PageOverTime over_time_;
  absl::flat_hash_map<VcpuRef, uint32_t> index_;
  std::vector<Vcpu> vcpus_;
  std::vector<Entry> entries_;
  uint64_t kept_ = 1;  // one bracket of so many
  uint64_t left_out_ = 0;
  StringInterner texts_;
  absl::flat_hash_map<uint32_t, uint32_t> text_of_function_;  // by FunctionId
};

}  // namespace xenoscope::report
