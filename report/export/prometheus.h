// Writes metrics in the text format of Prometheus, version 0.0.4
// (prometheus.io/docs/instrumenting/exposition_formats), which node_exporter's textfile collector
// reads, too.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace xenoscope::report {

// What servers say that the text is.
inline constexpr char kPrometheusType[] = "text/plain; version=0.0.4; charset=utf-8";

// A label's name, [a-z_]+, and its value, any bytes.
using MetricLabel = std::pair<std::string_view, std::string_view>;

class PrometheusText {
 public:
  // Begins a metric, a gauge: "xenoscope_share_ratio". Its samples follow.
  void Begin(std::string_view metric, std::string_view help);
  // Adds a sample. Values of labels are escaped; what is not printable becomes '?' (Printable).
  void Add(std::span<const MetricLabel> labels, double value);

  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::string metric_;
};

}  // namespace xenoscope::report
