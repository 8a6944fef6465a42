// Statements to a ClickHouse server, over its HTTP interface (ClickHouse's documentation, "HTTP
// Interface"), through libcurl.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "store/clickhouse/server_url.h"

namespace xenoscope::store {

class HttpClient {
 public:
  // The longest answer, in bytes.
  static constexpr size_t kMaxAnswer = size_t{1} << 30;

  // Loads libcurl; the server is not asked yet. Errors (NotFound): libcurl is not installed.
  static absl::StatusOr<HttpClient> Open(ServerUrl url);
  HttpClient(HttpClient&&) noexcept;
  ~HttpClient();

  // Runs a statement, and returns the server's whole answer, which may be anything. The data are
  // those of an INSERT. The answer takes the memory of `memory`, so that pages of the one before
  // are used again. Waits 10 s for a connection and 10 minutes for the answer. Errors: NotFound if
  // no server answers, or it has no such database or table; PermissionDenied; ResourceExhausted if
  // the answer is longer than kMaxAnswer; Internal with the server's message.
  absl::StatusOr<std::string> Run(std::string_view sql, std::string_view data = {},
                                  std::string memory = {});

  [[nodiscard]] const ServerUrl& url() const { return url_; }

 private:
  class Curl;
  HttpClient(ServerUrl url, std::unique_ptr<Curl> curl);

  ServerUrl url_;
  std::unique_ptr<Curl> curl_;
};

// Returns the error that an answer of the server is not of the form that was asked for.
absl::Status DamagedAnswer(const HttpClient& client);

}  // namespace xenoscope::store
