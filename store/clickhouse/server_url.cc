#include "store/clickhouse/server_url.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/error.h"

namespace xenoscope::store {
namespace {

constexpr uint16_t kPort = 8123;
constexpr uint16_t kSecurePort = 8443;
constexpr size_t kMaxDatabase = 128;

constexpr char kForm[] =
    "clickhouse://[USER@]HOST[:PORT]/DATABASE[?secure=true&netrc=FILE&ca=FILE]";

absl::Status NotOfForm(std::string_view what) { return InvalidError("{}: write {}", what, kForm); }

bool IsHostCharacter(char c) {
  return std::string_view("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_[]:")
             .find(c) != std::string_view::npos;
}

bool IsNameCharacter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Takes what is before the separator off `rest`; all of it where there is none.
std::string_view TakeUntil(char separator, std::string_view& rest) {
  const size_t at = std::min(rest.find(separator), rest.size());
  const std::string_view taken = rest.substr(0, at);
  rest.remove_prefix(std::min(at + 1, rest.size()));
  return taken;
}

absl::Status ParseOptions(std::string_view text, ServerUrl& url) {
  while (!text.empty()) {
    std::string_view value = TakeUntil('&', text);
    const std::string_view name = TakeUntil('=', value);
    if (name == "secure" && (value == "true" || value == "false")) {
      url.secure = value == "true";
    } else if (name == "netrc" && !value.empty()) {
      url.netrc = value;
    } else if (name == "ca" && !value.empty()) {
      url.ca = value;
    } else {
      return NotOfForm(fmt::format("the store's URL has the option '{}={}'", name, value));
    }
  }
  return absl::OkStatus();
}

// "HOST", "HOST:PORT", "[::1]:PORT"
absl::Status ParseHost(std::string_view text, ServerUrl& url) {
  url.port = url.secure ? kSecurePort : kPort;
  const size_t colon = text.rfind(':');
  const bool has_port = colon != std::string_view::npos && !text.ends_with(']');
  if (has_port) {
    const std::string_view port = text.substr(colon + 1);
    const char* const end = port.data() + port.size();
    const auto [rest, error] = std::from_chars(port.data(), end, url.port);
    if (error != std::errc() || rest != end || url.port == 0) {
      return NotOfForm(fmt::format("'{}' is not a port", port));
    }
    text = text.substr(0, colon);
  }
  if (text.empty() || !std::ranges::all_of(text, IsHostCharacter)) {
    return NotOfForm(fmt::format("'{}' is not a host", text));
  }
  url.host = text;
  return absl::OkStatus();
}

}  // namespace

std::string ServerUrl::Text() const {
  return fmt::format("{}{}:{}/{}", kClickHouseScheme, host, port, database);
}

absl::StatusOr<ServerUrl> ParseServerUrl(std::string_view text) {
  text.remove_prefix(kClickHouseScheme.size());
  std::string_view options = text;
  std::string_view path = TakeUntil('?', options);
  std::string_view authority = TakeUntil('/', path);
  ServerUrl url;
  XENOSCOPE_RETURN_IF_ERROR(ParseOptions(options, url));
  if (authority.find('@') != std::string_view::npos) {
    const std::string_view user = TakeUntil('@', authority);
    if (user.find(':') != std::string_view::npos) {
      return InvalidError(
          "the store's URL has a password, which others can read on the command line: put it into "
          "~/.netrc (machine HOST login USER password PASSWORD), or into a file that the URL names "
          "with ?netrc=FILE");
    }
    url.user = user;
  }
  XENOSCOPE_RETURN_IF_ERROR(ParseHost(authority, url));
  if (path.empty() || path.size() > kMaxDatabase || !std::ranges::all_of(path, IsNameCharacter)) {
    return NotOfForm(fmt::format("'{}' is not a database", path));
  }
  url.database = path;
  return url;
}

}  // namespace xenoscope::store
