// A guest's agent for the lab that keeps the recorder waiting. It gets ready as an honest one does.
// While it is to sample it answers nothing and sends data that is no sample. It sends a file one
// byte a second, without end.
#include <fmt/format.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/error.h"
#include "recording/info_json.h"
#include "sampler/agent/agent_link.h"
#include "sampler/agent/agent_messages.h"
#include "sampler/agent/vchan_channel.h"
#include "sampler/xen/host.h"

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
namespace agent = xenoscope::sampler::agent;

struct Hostile {
  agent::Link& link;
  bool is_mute = false;
  std::optional<agent::FileKind> wanted;

  void Hear(const agent::AnyMessage& message) {
    if (std::holds_alternative<agent::Hello>(message)) {
      agent::Hello hello;
      hello.vcpus = 1;
      hello.program = "hostile";
      link.Queue(hello);
    } else if (const auto* ping = std::get_if<agent::Ping>(&message)) {
      if (!is_mute) link.Queue(agent::Pong{ping->number, xenoscope::sampler::ReadTsc().value});
    } else if (std::holds_alternative<agent::Prepare>(message)) {
      xenoscope::recording::RecordingInfo info;
      info.events.push_back({"cpu-clock", 0, 0, 1'000'000, "cpu-clock:100", false});
      link.Queue(agent::Prepared{xenoscope::recording::ToJson(info)});
    } else if (std::holds_alternative<agent::Start>(message)) {
      is_mute = true;
    } else if (std::holds_alternative<agent::Stop>(message)) {
      is_mute = false;
      link.Queue(agent::Account{R"({"format": {"major": 1}})", true});
    } else if (const auto* want = std::get_if<agent::Want>(&message)) {
      wanted = want->kind;
    }
  }
  void Bother() {
    if (is_mute) link.Queue(agent::Samples{std::vector<std::byte>(1)});
    if (wanted) link.Queue(agent::FilePart{*wanted, false, std::vector<std::byte>(1)});
  }
};

absl::Status Serve() {
  XENOSCOPE_ASSIGN_OR_RETURN(const auto channel, xenoscope::sampler::OfferVchan(xenoscope::kDom0));
  agent::Link link(*channel);
  Hostile hostile{link, false, std::nullopt};
  auto next = steady_clock::now();
  while (true) {
    XENOSCOPE_ASSIGN_OR_RETURN(const auto message, link.Await(next));
    if (message && std::holds_alternative<agent::Bye>(*message)) return absl::OkStatus();
    if (message) hostile.Hear(*message);
    if (steady_clock::now() < next) continue;
    hostile.Bother();
    next = steady_clock::now() + milliseconds(1000);
  }
}

}  // namespace

int main() {
  while (true) {
    if (const absl::Status served = Serve(); !served.ok())
      fmt::print("{}\n", xenoscope::Message(served));
  }
}
