// The messages of agent and recorder as bytes: each in both directions, and what readers refuse.
#include "sampler/agent/agent_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace xenoscope::sampler::agent {
namespace {

using ::testing::HasSubstr;

std::vector<std::byte> SomeBytes(size_t count) {
  return std::vector<std::byte>(count, std::byte{0x5a});
}

std::vector<AnyMessage> OneOfEach() {
  return {
      Hello{.major = 1,
            .minor = 7,
            .vcpus = 4,
            .tsc_hz = 2'300'000'000,
            .tsc_native = true,
            .program = "xenoscope 0.1.0",
            .kernel = "6.1.0"},
      Ping{3},
      Pong{3, 0xfedcba9876543210},
      Prepare{{"cycles:u", "instructions:1000"}, true, GuestSource::kXenoprof},
      Prepare{{}, true, GuestSource::kPerf, 8192, true, uint64_t{1} << 40, true, {"irq", "a:b"}},
      Prepared{"{}"},
      Start{},
      Samples{SomeBytes(300)},
      Stop{},
      Account{"{}", true},
      Want{FileKind::kModules},
      FilePart{FileKind::kKallsyms, false, SomeBytes(5)},
      Failed{"no such event"},
      Bye{},
      Enlist{},
      Enlisted{true},
      Count{{"{cycles,instructions}", "page-faults"}},
      Counts{true, {"", "no counter"}, {{1, 3, 7, 100, 50}, {0, 0, 1ULL << 63, 2, 1}}},
      Share{true, SomeBytes(9)},
      Shared{}};
}

// Returns what a reader makes of bytes that come `step` at a time.
std::vector<AnyMessage> Read(Bytes bytes, size_t step) {
  std::vector<AnyMessage> messages;
  FrameReader reader;
  for (size_t at = 0; at < bytes.size(); at += step) {
    reader.Add(bytes.subspan(at, std::min(step, bytes.size() - at)));
    while (true) {
      auto message = reader.Next();
      EXPECT_TRUE(message.ok()) << message.status();
      if (!message.ok() || !*message) break;
      messages.push_back(*std::move(*message));
    }
  }
  EXPECT_FALSE(reader.Pending());
  return messages;
}

std::string ErrorOf(Bytes bytes) {
  FrameReader reader;
  reader.Add(bytes);
  const auto message = reader.Next();
  return message.ok() ? "" : std::string(Message(message.status()));
}

TEST(AgentMessages, RoundTripInPiecesOfAnySize) {
  std::vector<std::byte> all;
  for (const AnyMessage& message : OneOfEach()) {
    const auto frame = Encode(message);
    all.insert(all.end(), frame.begin(), frame.end());
  }
  for (const size_t step : {size_t{1}, size_t{7}, size_t{64}, all.size()}) {
    EXPECT_EQ(Read(all, step), OneOfEach()) << step;
  }
}

TEST(AgentMessages, HelloHasDocumentedBytes) {
  const auto frame = Encode(Hello{.major = 1,
                                  .minor = 0,
                                  .vcpus = 2,
                                  .tsc_hz = 0x1122334455,
                                  .tsc_native = true,
                                  .program = "x",
                                  .kernel = ""});
  std::string hex;
  for (const std::byte byte : Bytes(frame).subspan(kFrameHeader)) {
    hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
  }
  EXPECT_EQ(hex,
            "01000000"
            "02000000"
            "5544332211000000"
            "01"
            "0100"
            "78"
            "0000");
  EXPECT_EQ(AsText(Bytes(frame).first(4)), "XSAG");
}

// Version 1.11 added that the guest is to shut down, 1.10 functions, 1.8 the kernel's times of
// CPUs, 1.7 the kernel's events, 1.5 threads, 1.4 the pieces of stacks and branch records, 1.1 the
// source.
TEST(AgentMessages, PrepareOfOlderVersionsHasDefaults) {
  Prepare newest{{"cycles"}, true, GuestSource::kXenoprof, 8192, true, 7, true};
  newest.kernel_events = {"lock"};
  newest.cpu_times = true;
  newest.functions = {"acpi_*"};
  newest.shutdown = true;
  const auto frame = Encode(newest);
  const Bytes payload = Bytes(frame).subspan(kFrameHeader);
  EXPECT_EQ(Read(frame, frame.size()), std::vector<AnyMessage>({newest}));
  const auto of_1_10 = EncodeFrame(4, payload.first(payload.size() - 1));
  newest.shutdown = false;
  EXPECT_EQ(Read(of_1_10, of_1_10.size()), std::vector<AnyMessage>({newest}));
  constexpr size_t kSince10 = 2 * sizeof(uint16_t) + std::string_view("acpi_*").size() + 1;
  const auto of_1_8 = EncodeFrame(4, payload.first(payload.size() - kSince10));
  newest.functions.clear();
  EXPECT_EQ(Read(of_1_8, of_1_8.size()), std::vector<AnyMessage>({newest}));
  const auto of_1_7 = EncodeFrame(4, payload.first(payload.size() - kSince10 - 1));
  newest.cpu_times = false;
  EXPECT_EQ(Read(of_1_7, of_1_7.size()), std::vector<AnyMessage>({newest}));
  constexpr size_t kText = sizeof(uint16_t) + std::string_view("lock").size();
  constexpr size_t kSince7 = sizeof(uint16_t) + kText + 1 + kSince10;
  const auto of_1_6 = EncodeFrame(4, payload.first(payload.size() - kSince7));
  EXPECT_EQ(Read(of_1_6, of_1_6.size()),
            std::vector<AnyMessage>(
                {Prepare{{"cycles"}, true, GuestSource::kXenoprof, 8192, true, 7, true}}));
  const auto of_1_4 = EncodeFrame(4, payload.first(payload.size() - kSince7 - 1));
  EXPECT_EQ(
      Read(of_1_4, of_1_4.size()),
      std::vector<AnyMessage>({Prepare{{"cycles"}, true, GuestSource::kXenoprof, 8192, true, 7}}));
  constexpr size_t kSince4 = sizeof(uint32_t) + 1 + sizeof(uint64_t) + 1 + kSince7;
  const auto of_1_3 = EncodeFrame(4, payload.first(payload.size() - kSince4));
  EXPECT_EQ(Read(of_1_3, of_1_3.size()),
            std::vector<AnyMessage>({Prepare{{"cycles"}, true, GuestSource::kXenoprof}}));
  const auto of_1_0 = EncodeFrame(4, payload.first(payload.size() - kSince4 - 1));
  EXPECT_EQ(Read(of_1_0, of_1_0.size()),
            std::vector<AnyMessage>({Prepare{{"cycles"}, true, GuestSource::kPerf}}));
  const auto cut = EncodeFrame(4, payload.first(payload.size() - 2));
  EXPECT_THAT(ErrorOf(cut), HasSubstr("is incomplete"));
}

TEST(AgentMessages, CountsUnknownFrames) {
  FrameReader reader;
  reader.Add(EncodeFrame(999, SomeBytes(10)));
  reader.Add(Encode(Ping{1}));
  const auto message = reader.Next();
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(**message, AnyMessage(Ping{1}));
  EXPECT_EQ(reader.unknown(), 1u);
}

TEST(AgentMessages, IgnoreAppendedFields) {
  auto payload = SomeBytes(40);
  FrameReader reader;
  reader.Add(EncodeFrame(2, payload));
  const auto message = reader.Next();
  ASSERT_TRUE(message.ok());
  EXPECT_EQ(**message, AnyMessage(Ping{0x5a5a5a5a5a5a5a5a}));
}

TEST(AgentMessages, ErrorNamesOffsetOfInvalidFrame) {
  EXPECT_THAT(ErrorOf(SomeBytes(40)), HasSubstr("at byte 0"));
  auto frame = Encode(Pong{1, 2});
  frame.back() ^= std::byte{1};
  EXPECT_THAT(ErrorOf(frame), HasSubstr("checksum"));
  frame = Encode(Pong{1, 2});
  frame[5] ^= std::byte{1};
  EXPECT_THAT(ErrorOf(frame), HasSubstr("no frame begins there"));
}

TEST(AgentMessages, RefuseOversizedFrameByItsHeader) {
  const auto frame = EncodeFrame(7, SomeBytes(kMaxPayload + 1));
  EXPECT_THAT(ErrorOf(Bytes(frame).first(kFrameHeader)), HasSubstr("at most 65536"));
}

TEST(AgentMessages, RefuseTruncatedAndInvalidPayloads) {
  struct Case {
    const char* what;
    uint16_t kind;
    std::vector<unsigned char> payload;
  };
  const Case cases[] = {
      {"a pong without its TSC", 3, {1, 0, 0, 0, 0, 0, 0, 0}},
      {"a hello that ends in its program",
       1,
       {1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 9, 0}},
      {"a prepare of more events than it has", 4, {0, 3, 0, 1, 0, 'a'}},
      {"a flag of 2", 4, {2, 0, 0}},
      {"a file of no kind", 10, {9}},
      {"a text beyond the limit", 12, {1, 1}},
      {"a part of what is shared without its flag", 18, {}},
  };
  for (const Case& each : cases) {
    const auto frame = EncodeFrame(each.kind, std::as_bytes(std::span(each.payload)));
    EXPECT_THAT(ErrorOf(frame), HasSubstr("incomplete")) << each.what;
  }
}

TEST(AgentMessages, TruncateLongTextsAndLists) {
  const std::string longer(kMaxText + 1, 'a');
  const auto read = Read(Encode(Failed{longer}), 1000);
  EXPECT_EQ(std::get<Failed>(read.at(0)).why, longer.substr(1));
  const auto prepare = Read(Encode(Prepare{std::vector<std::string>(kMaxEvents + 1, "e")}), 1000);
  EXPECT_EQ(std::get<Prepare>(prepare.at(0)).events.size(), kMaxEvents);
}

}  // namespace
}  // namespace xenoscope::sampler::agent
