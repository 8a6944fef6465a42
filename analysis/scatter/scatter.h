// A scatterplot: points (time, value) in lines ("d1v0"), given as the trace is read.
// analysis/scatter/scatter_registry.h lists them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/analysis.h"
#include "analysis/series/series.h"
#include "base/tsc.h"

namespace xenoscope::analysis {

// What the values of a scatterplot are.
enum class ValueKind : uint8_t {
  kNumber,   // of a pCPU
  kState,    // of a vCPU; kStateNames
  kCycles,   // a length of time
  kAddress,  // of the guest; 64 bits without a sign
};

// Values of ValueKind::kState; the numbers are those of xenalyze's scatterplot.
enum class StateValue : int8_t { kLost = -1, kBlocked, kOffline, kRunnable, kRunning };

class PointSink {
 public:
  virtual ~PointSink() = default;
  virtual void OnPoint(uint64_t line, Tsc x, uint64_t y) = 0;
};

class Scatter : public Subscriber {
 public:
  explicit Scatter(DomainFilter filter) : filter_(std::move(filter)) {}
  // Where the points go; must outlive the pass.
  void SetSink(PointSink& sink) { sink_ = &sink; }
  // What people call the line of this key.
  virtual std::string LineName(uint64_t key) const { return ToString(VcpuOfKey(key)); }

 protected:
  bool Wants(DomainId domain) const { return filter_.Wants(domain); }
  void Point(uint64_t line, Tsc x, uint64_t y) {
    if (sink_ != nullptr) sink_->OnPoint(line, x, y);
  }

 private:
  DomainFilter filter_;
  PointSink* sink_ = nullptr;
};

struct ScatterOptions {
  DomainFilter filter;
  std::optional<uint32_t> parameter;  // a port or a vector
};

struct ScatterInfo {
  std::string_view name;       // stable: --scatter
  std::string_view parameter;  // "", "PORT" or "VECTOR"
  bool needs_parameter = false;
  std::string_view title;    // of a picture
  std::string_view y_title;  // of its axis
  std::string_view about;    // one line for --list
  ValueKind kind = ValueKind::kNumber;
  std::unique_ptr<Scatter> (*make)(ScatterOptions) = nullptr;
};

}  // namespace xenoscope::analysis
