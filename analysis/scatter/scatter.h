// A scatterplot: points (time, value) in lines ("d1v0"), handed on while the trace is read.
// analysis/scatter/scatter_registry.h lists all scatterplots.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "analysis/analysis.h"
#include "analysis/series/series.h"
#include "base/tsc.h"
#include "trace/figures.h"

namespace xenoscope::analysis {

// The kind of a scatterplot's values.
enum class ValueKind : uint8_t {
  kNumber,   // number of a pCPU
  kState,    // state of a vCPU, one of kStateNames
  kCycles,   // length of time, in cycles
  kAddress,  // guest address, 64 bits unsigned
};

// The values of ValueKind::kState, numbered as in xenalyze's scatterplot.
enum class StateValue : int8_t { kLost = -1, kBlocked, kOffline, kRunnable, kRunning };

// A receiver of points.
class PointSink {
 public:
  virtual ~PointSink() = default;
  virtual void OnPoint(uint64_t line, Tsc x, uint64_t y) = 0;
};

class Scatter : public Subscriber {
 public:
  explicit Scatter(DomainFilter filter) : filter_(std::move(filter)) {}
  // Sets the receiver of the points, which must outlive the pass.
  void SetSink(PointSink& sink) { sink_ = &sink; }
  // Returns the name of the line of this key, for people.
  [[nodiscard]] virtual std::string LineName(uint64_t key) const {
    return ToString(VcpuOfKey(key));
  }

 protected:
  [[nodiscard]] bool Wants(DomainId domain) const { return filter_.Wants(domain); }
  void Point(uint64_t line, Tsc x, uint64_t y) {
    if (sink_ != nullptr) sink_->OnPoint(line, x, y);
  }

 private:
  DomainFilter filter_;
  PointSink* sink_ = nullptr;
};

struct ScatterOptions {
  DomainFilter filter;
  std::optional<uint32_t> parameter;  // I/O port or interrupt vector to restrict the plot to
};

struct ScatterInfo {
  std::string_view name;       // stable: the name after --scatter
  std::string_view parameter;  // name of the parameter: "", "PORT" or "VECTOR"
  bool needs_parameter = false;
  std::string_view title;    // heading of a picture
  std::string_view y_title;  // label of the value axis
  std::string_view about;    // explanation in one line, for --list
  ValueKind kind = ValueKind::kNumber;
  trace::Figure figure = trace::Figure::kRunstates;  // the events that it is made from
  std::unique_ptr<Scatter> (*make)(ScatterOptions) = nullptr;
};

}  // namespace xenoscope::analysis
