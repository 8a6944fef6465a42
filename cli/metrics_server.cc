#include "cli/metrics_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <microhttpd.h>
#include <netinet/in.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "absl/strings/ascii.h"
#include "base/error.h"
#include "base/shared_library.h"
#include "report/export/prometheus.h"

namespace xenoscope::cli {
namespace {

constexpr char kLibrary[] = "libmicrohttpd.so.12";
constexpr unsigned kMostConnections = 16;
constexpr unsigned kIdleSeconds = 10;
constexpr char kPlainText[] = "text/plain; charset=utf-8";

struct Answer {
  unsigned status = MHD_HTTP_OK;
  const char* type = kPlainText;
  std::string text;
};

// The library's functions.
struct Functions {
  decltype(MHD_start_daemon)* start = nullptr;
  decltype(MHD_stop_daemon)* stop = nullptr;
  decltype(MHD_create_response_from_buffer)* make_response = nullptr;
  decltype(MHD_add_response_header)* add_header = nullptr;
  decltype(MHD_queue_response)* queue = nullptr;
  decltype(MHD_destroy_response)* destroy = nullptr;

  static absl::StatusOr<Functions> Load() {
    XENOSCOPE_ASSIGN_OR_RETURN(const SharedLibrary library,
                               SharedLibrary::Load(kLibrary, "metrics on a port"));
    Functions out;
    XENOSCOPE_RETURN_IF_ERROR(library.Find(
        "MHD_start_daemon", out.start, "MHD_stop_daemon", out.stop,
        "MHD_create_response_from_buffer", out.make_response, "MHD_add_response_header",
        out.add_header, "MHD_queue_response", out.queue, "MHD_destroy_response", out.destroy));
    return out;
  }
};

class Server final : public MetricsServer {
 public:
  Server(Functions functions, Page page) : functions_(functions), page_(std::move(page)) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  ~Server() override {
    if (daemon_ != nullptr) functions_.stop(daemon_);
  }

  absl::Status Listen(uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    daemon_ = functions_.start(MHD_USE_INTERNAL_POLLING_THREAD, port, nullptr, nullptr, &Handle,
                               this, MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_CONNECTION_LIMIT,
                               kMostConnections, MHD_OPTION_CONNECTION_TIMEOUT, kIdleSeconds,
                               MHD_OPTION_END);
    if (daemon_ != nullptr) return absl::OkStatus();
    return PreconditionError("cannot listen on 127.0.0.1:{}: choose a port that no one uses", port);
  }

 private:
  // Called for each request: once with its head, then with what it sends, and again at its end.
  static MHD_Result Handle(void* server, MHD_Connection* connection, const char* url,
                           const char* method, const char* /*version*/, const char* /*upload*/,
                           size_t* upload_size, void** request) {
    static int begun = 0;
    if (*request == nullptr) {
      *request = &begun;
      return MHD_YES;
    }
    if (*upload_size > 0) {  // read, and of no use
      *upload_size = 0;
      return MHD_YES;
    }
    return static_cast<Server*>(server)->Send(connection, url, method);
  }

  MHD_Result Send(MHD_Connection* connection, std::string_view url, std::string_view method) {
    Answer answer = AnswerTo(url, method);
    // The library copies the text.
    MHD_Response* const response =
        functions_.make_response(answer.text.size(), answer.text.data(), MHD_RESPMEM_MUST_COPY);
    if (response == nullptr) return MHD_NO;
    functions_.add_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, answer.type);
    const MHD_Result queued = functions_.queue(connection, answer.status, response);
    functions_.destroy(response);
    return queued;
  }

  Answer AnswerTo(std::string_view url, std::string_view method) {
    if (method != MHD_HTTP_METHOD_GET && method != MHD_HTTP_METHOD_HEAD) {
      return {MHD_HTTP_METHOD_NOT_ALLOWED, kPlainText, "only GET is answered\n"};
    }
    if (url != "/metrics") return {MHD_HTTP_NOT_FOUND, kPlainText, "metrics are at /metrics\n"};
    absl::StatusOr<std::string> page = page_();
    if (!page.ok()) {
      return {MHD_HTTP_INTERNAL_SERVER_ERROR, kPlainText,
              fmt::format("{}\n", Message(page.status()))};
    }
    return {MHD_HTTP_OK, report::kPrometheusType, *std::move(page)};
  }

  Functions functions_;
  Page page_;
  MHD_Daemon* daemon_ = nullptr;
};

}  // namespace

bool NamesPort(std::string_view target) {
  return !target.empty() && std::ranges::all_of(target, absl::ascii_isdigit);
}

absl::StatusOr<std::unique_ptr<MetricsServer>> MetricsServer::Start(uint16_t port, Page page) {
  XENOSCOPE_ASSIGN_OR_RETURN(const Functions functions, Functions::Load());
  auto server = std::make_unique<Server>(functions, std::move(page));
  XENOSCOPE_RETURN_IF_ERROR(server->Listen(port));
  return server;
}

}  // namespace xenoscope::cli
