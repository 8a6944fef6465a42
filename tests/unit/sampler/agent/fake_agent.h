// An agent that answers a recorder correctly, which tests change.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "base/tsc.h"
#include "recording/info_json.h"
#include "sampler/agent/agent_link.h"
#include "sampler/agent/agent_messages.h"

namespace xenoscope::sampler::agent {

// The clock of both sides, in ns.
inline Tsc Now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return Tsc{static_cast<uint64_t>(std::chrono::nanoseconds(now).count())};
}

class FakeAgent {
 public:
  explicit FakeAgent(std::function<Tsc()> read_tsc) : read_tsc_(std::move(read_tsc)) {
    ready_for.events.push_back({.name = "cpu-clock", .period = 1, .clocked_by = ""});
  }

  // Returns the answers to one message, in order.
  std::vector<AnyMessage> AnswersTo(const AnyMessage& message) {
    std::vector<AnyMessage> answers;
    if (is_mute && is_mute(message)) return answers;
    if (std::holds_alternative<Hello>(message)) {
      answers.emplace_back(hello);
    } else if (const auto* ping = std::get_if<Ping>(&message)) {
      if (samples_ && sample) answers.emplace_back(Samples{sample()});
      answers.emplace_back(Pong{ping->number, read_tsc_().value});
    } else if (const auto* prepare = std::get_if<Prepare>(&message)) {
      prepared = *prepare;
      answers.emplace_back(Prepared{recording::ToJson(ready_for)});
    } else if (std::holds_alternative<Enlist>(message)) {
      answers.emplace_back(Enlisted{});
    } else if (std::holds_alternative<Start>(message)) {
      samples_ = true;
    } else if (std::holds_alternative<Stop>(message)) {
      samples_ = false;
      answers.emplace_back(Account{recording::ToJson({}), true});
    } else if (const auto* count = std::get_if<Count>(&message)) {
      if (counts) answers = counts(*count);
    } else if (const auto* share = std::get_if<Share>(&message)) {
      shared.insert(shared.end(), share->bytes.begin(), share->bytes.end());
      if (share->last) answers.push_back(when_shared);
    } else if (const auto* want = std::get_if<Want>(&message)) {
      answers.emplace_back(FilePart{want->kind, true, files[want->kind]});
    }
    return answers;
  }

  // Answers what comes, until a message is the last one, the recorder goes, or nothing comes for so
  // long. Returns whether the recorder said bye.
  bool Play(Link& link, std::chrono::milliseconds max_wait,
            const std::function<bool(const AnyMessage&)>& is_last = nullptr) {
    while (true) {
      auto message = link.Await(std::chrono::steady_clock::now() + max_wait);
      if (!message.ok() || !*message) return false;
      if (std::holds_alternative<Bye>(**message)) return true;
      for (const AnyMessage& answer : AnswersTo(**message)) link.Queue(answer);
      link.Pump(0).IgnoreError();
      if (is_last && is_last(**message)) return false;
    }
  }

  static constexpr uint64_t kHz = 1'000'000'000;

  Hello hello{.major = kMajor,
              .minor = kMinor,
              .vcpus = 2,
              .tsc_hz = kHz,
              .tsc_native = true,
              .program = "xenoscope test",
              .kernel = "6.1"};
  recording::RecordingInfo ready_for;
  std::optional<Prepare> prepared;                 // the last request to get ready
  std::function<bool(const AnyMessage&)> is_mute;  // whether it does not answer such a message
  std::function<std::vector<std::byte>()> sample;  // chunks before each pong while it samples
  std::function<std::vector<AnyMessage>(const Count&)> counts;  // its answers
  std::map<FileKind, std::vector<std::byte>> files;             // none longer than a frame
  std::vector<std::byte> shared;                                // what a recorder has shared
  AnyMessage when_shared = Shared{};                            // its answer to the last part

 private:
  std::function<Tsc()> read_tsc_;
  bool samples_ = false;
};

// Returns whether a message is of this kind.
template <typename Message>
bool Is(const AnyMessage& message) {
  return std::holds_alternative<Message>(message);
}

}  // namespace xenoscope::sampler::agent
