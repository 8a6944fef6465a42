#include "store/clickhouse/http_client.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/error.h"
#include "base/shared_library.h"
#include "store/bounded_text.h"

// The header would check the arguments of a function that is linked; here it is a pointer.
#undef curl_easy_setopt
#undef curl_easy_getinfo

namespace xenoscope::store {
namespace {

constexpr char kLibrary[] = "libcurl.so.4";
constexpr long kConnectSeconds = 10;
constexpr long kAnswerSeconds = 600;
constexpr long kOk = 200;
constexpr long kUnauthorized = 401;
constexpr long kForbidden = 403;
constexpr size_t kMaxMessage = 500;
constexpr size_t kServerBuffer = size_t{64} << 20;
constexpr long kReceiveBuffer = 128L << 10;  // fits into a cache

// Appends a piece of the answer.
size_t Receive(const char* bytes, size_t size, size_t count, void* to) {
  auto& answer = *static_cast<std::string*>(to);
  if (size * count > HttpClient::kMaxAnswer - answer.size()) return 0;  // ends the transfer
  answer.append(bytes, size * count);
  return size * count;
}

// The number of "Code: 60, e.displayText() = ..." (ClickHouse, ErrorCodes.cpp); 0 if there is none.
int ErrorCode(std::string_view answer) {
  constexpr std::string_view kBegin = "Code: ";
  int code = 0;
  if (!answer.starts_with(kBegin)) return 0;
  answer.remove_prefix(kBegin.size());
  std::from_chars(answer.data(), answer.data() + answer.size(), code);
  return code;
}

// An answer that is not 200 OK.
absl::Status Refusal(const ServerUrl& url, long status, std::string_view answer) {
  constexpr int kUnknownTable = 60;
  constexpr int kUnknownDatabase = 81;
  constexpr int kNoShard = 279;                                   // ALL_CONNECTION_TRIES_FAILED
  constexpr std::array kDenied = {192, 193, 194, 195, 497, 516};  // users, passwords, rights
  const int code = ErrorCode(answer);
  const std::string_view line =
      std::string_view(answer).substr(0, answer.find_last_not_of("\r\n") + 1);
  const std::string text = BoundedName(line.substr(0, kMaxMessage));
  if (code == kUnknownDatabase) {
    return NotFoundError("{}: the server has no such database: CREATE DATABASE {}", url.Text(),
                         url.database);
  }
  if (code == kNoShard) {
    return NotFoundError(
        "{}: a shard does not answer this server, and an answer without its hosts would be wrong: "
        "start it, or ask the other shards' own databases: {}",
        url.Text(), text);
  }
  if (code == kUnknownTable) {
    return NotFoundError("{}: the database has no store: {}", url.Text(), text);
  }
  if (status == kUnauthorized || status == kForbidden ||
      std::ranges::find(kDenied, code) != kDenied.end()) {
    return PermissionError(
        "{}: the server refuses the user or what it asks; give the user in the URL (USER@HOST) and "
        "the password in ~/.netrc: {}",
        url.Text(), text);
  }
  return InternalError("{}: the server answers {}: {}", url.Text(), status, text);
}

}  // namespace

// libcurl's functions, and a connection.
class HttpClient::Curl {
 public:
  static absl::StatusOr<std::unique_ptr<Curl>> Open() {
    XENOSCOPE_ASSIGN_OR_RETURN(const SharedLibrary library,
                               SharedLibrary::Load(kLibrary, "stores in ClickHouse"));
    auto curl = std::make_unique<Curl>();
    XENOSCOPE_RETURN_IF_ERROR(
        library.Find("curl_easy_init", curl->init_, "curl_easy_cleanup", curl->cleanup_,
                     "curl_easy_setopt", curl->setopt_, "curl_easy_getinfo", curl->getinfo_,
                     "curl_easy_perform", curl->perform_, "curl_easy_strerror", curl->strerror_,
                     "curl_easy_escape", curl->escape_, "curl_free", curl->free_));
    curl->handle_ = curl->init_();
    if (curl->handle_ == nullptr) return ExhaustedError("{} does not start", kLibrary);
    return curl;
  }

  Curl() = default;
  Curl(const Curl&) = delete;
  Curl& operator=(const Curl&) = delete;
  ~Curl() {
    if (handle_ != nullptr) cleanup_(handle_);
  }

  template <typename Value>
  void Set(CURLoption option, Value value) {
    setopt_(handle_, option, value);
  }
  std::string Escape(std::string_view text) {
    char* const escaped = escape_(handle_, text.data(), static_cast<int>(text.size()));
    std::string copy = escaped == nullptr ? "" : escaped;
    free_(escaped);
    return copy;
  }
  CURLcode Perform() { return perform_(handle_); }
  long Status() {
    long status = 0;
    getinfo_(handle_, CURLINFO_RESPONSE_CODE, &status);
    return status;
  }
  const char* Reason(CURLcode code) { return strerror_(code); }

 private:
  CURL* handle_ = nullptr;
  decltype(curl_easy_init)* init_ = nullptr;
  decltype(curl_easy_cleanup)* cleanup_ = nullptr;
  decltype(curl_easy_setopt)* setopt_ = nullptr;
  decltype(curl_easy_getinfo)* getinfo_ = nullptr;
  decltype(curl_easy_perform)* perform_ = nullptr;
  decltype(curl_easy_strerror)* strerror_ = nullptr;
  decltype(curl_easy_escape)* escape_ = nullptr;
  decltype(curl_free)* free_ = nullptr;
};

HttpClient::HttpClient(ServerUrl url, std::unique_ptr<Curl> curl)
    : url_(std::move(url)), curl_(std::move(curl)) {}
HttpClient::HttpClient(HttpClient&&) noexcept = default;
HttpClient::~HttpClient() = default;

absl::StatusOr<HttpClient> HttpClient::Open(ServerUrl url) {
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<Curl> curl, Curl::Open());
  curl->Set(CURLOPT_PROTOCOLS_STR, "http,https");
  curl->Set(CURLOPT_NOSIGNAL, 1L);
  curl->Set(CURLOPT_CONNECTTIMEOUT, kConnectSeconds);
  curl->Set(CURLOPT_TIMEOUT, kAnswerSeconds);
  curl->Set(CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
  if (!url.netrc.empty()) curl->Set(CURLOPT_NETRC_FILE, url.netrc.c_str());
  if (!url.ca.empty()) curl->Set(CURLOPT_CAINFO, url.ca.c_str());
  curl->Set(CURLOPT_WRITEFUNCTION, &Receive);
  curl->Set(CURLOPT_BUFFERSIZE, kReceiveBuffer);
  return HttpClient(std::move(url), std::move(curl));
}

absl::StatusOr<std::string> HttpClient::Run(std::string_view sql, std::string_view data,
                                            std::string memory) {
  // Without wait_end_of_query an error in the middle would come as a part of the answer.
  // libcurl looks for the password of a user that the address names, not of CURLOPT_USERNAME.
  const std::string user = url_.user.empty() ? "" : curl_->Escape(url_.user) + "@";
  // Answers that are longer than the buffer go through a file of the server.
  std::string address =
      fmt::format("http{}://{}{}:{}/?database={}&wait_end_of_query=1&buffer_size={}",
                  url_.secure ? "s" : "", user, url_.host, url_.port, url_.database, kServerBuffer);
  const std::string_view body = data.empty() ? sql : data;
  if (!data.empty()) {
    // A slice is one block, which a MergeTree adds wholly or not.
    address += "&max_insert_block_size=100000000&insert_distributed_sync=1&query=";
    address += curl_->Escape(sql);
  }
  std::string answer = std::move(memory);
  answer.clear();
  curl_->Set(CURLOPT_URL, address.c_str());
  curl_->Set(CURLOPT_POSTFIELDSIZE_LARGE, static_cast<curl_off_t>(body.size()));
  curl_->Set(CURLOPT_POSTFIELDS, body.data());
  curl_->Set(CURLOPT_WRITEDATA, &answer);
  const CURLcode code = curl_->Perform();
  if (code == CURLE_WRITE_ERROR) {
    return ExhaustedError("{}: the answer is longer than {} MiB: choose fewer hosts or less time",
                          url_.Text(), kMaxAnswer >> 20U);
  }
  if (code != CURLE_OK) {
    return NotFoundError(
        "{}: no answer ({}); is a ClickHouse server there, and is this the port of its HTTP{} "
        "interface?",
        url_.Text(), curl_->Reason(code), url_.secure ? "S" : "");
  }
  if (curl_->Status() != kOk) return Refusal(url_, curl_->Status(), answer);
  return answer;
}

absl::Status DamagedAnswer(const HttpClient& client) {
  return InvalidError("{}: the server's answer is not of the form that was asked for",
                      client.url().Text());
}

}  // namespace xenoscope::store
