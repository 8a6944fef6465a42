// Serves metrics to Prometheus on this host, by GNU libmicrohttpd.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace xenoscope::cli {

// Whether the words of --metrics name a port, not a file: digits alone.
[[nodiscard]] bool NamesPort(std::string_view target);

class MetricsServer {
 public:
  using Page = std::function<absl::StatusOr<std::string>()>;

  // Answers GET /metrics on 127.0.0.1:PORT with `page`, which a thread of its own calls for one
  // request after the other; an error becomes status 500 with its message. Idle connections end
  // after 10 s; there are at most 16. Errors: NotFound without the library; FailedPrecondition if
  // the port is in use.
  static absl::StatusOr<std::unique_ptr<MetricsServer>> Start(uint16_t port, Page page);

  virtual ~MetricsServer() = default;
};

}  // namespace xenoscope::cli
