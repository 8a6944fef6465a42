// The address of a ClickHouse server as people write it:
// clickhouse://[USER@]HOST[:PORT]/DATABASE[?secure=true&netrc=FILE&ca=FILE]
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace xenoscope::store {

inline constexpr std::string_view kClickHouseScheme = "clickhouse://";

struct ServerUrl {
  std::string user;  // empty: as the netrc file says for the host, else ClickHouse's "default"
  std::string host;  // an IPv6 address in brackets
  uint16_t port = 0;
  std::string database;  // letters, digits and underscores
  bool secure = false;   // HTTPS
  std::string netrc;     // the file that has the password; empty: ~/.netrc
  std::string ca;        // the certificates that are trusted; empty: the system's

  // Returns the address for messages: "clickhouse://HOST:PORT/DATABASE".
  [[nodiscard]] std::string Text() const;
};

// Parses a URL that begins with kClickHouseScheme. The port is that of ClickHouse's HTTP interface:
// 8123, with secure=true 8443. Errors (InvalidArgument): it is not of the form above, or has a
// password, which every user of the machine could read on the command line.
[[nodiscard]] absl::StatusOr<ServerUrl> ParseServerUrl(std::string_view url);

}  // namespace xenoscope::store
