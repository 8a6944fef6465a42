// A recording that is written reads the same; one that is cut off anywhere reads up to there.
#include "recording/recording.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"
#include "recording/archive.h"
#include "recording/changes.h"
#include "recording/info_json.h"
#include "recording/process_reader.h"
#include "recording/writer.h"

namespace xenoscope::recording {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class RecordingTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "recording_test.XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override { fs::remove_all(directory_); }

  std::string Path(const std::string& name) const { return (directory_ / name).string(); }

  fs::path directory_;
};

std::string Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void Write(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

RecordingInfo SmallInfo() {
  RecordingInfo info;
  info.written_by = "xenoscope test";
  info.command = {"sleep", "1"};
  info.xen = {"4.17.7", "abcdef", "console=com1"};
  info.host = {2'300'000'000, 2, CpuVendor::kAmd, "6.1.0"};
  info.started = Tsc{1000};
  info.stopped = Tsc{9000};
  info.domains = {{.id = kDom0,
                   .name = "Domain-0",
                   .type = DomainType::kPv,
                   .role = Role::kInitiator,
                   .vcpus = 1},
                  {.id = DomainId{3},
                   .name = "web",
                   .type = DomainType::kPvh,
                   .role = Role::kPassive,
                   .vcpus = 2,
                   .died = true}};
  info.domains[1].changes_left_out = 7;
  info.sources = {{.name = "xenoprof",
                   .cpu_type = "x86-64/family15h",
                   .drain_interval_ns = 5'000'000,
                   .drains = {.count = 400,
                              .p50_ns = 5'100'000,
                              .p99_ns = 7'000'000,
                              .most_ns = 9'000'000,
                              .held_ns = 30'000,
                              .most_waiting_bytes = 4096}},
                  {.name = "vcpu", .cpu_type = "", .drain_interval_ns = 4'000'000, .seed = 99}};
  info.sources[1].problems = {"web: its agent was late"};
  info.own_cpu_ns = 123'456;
  info.boost = BoostInfo{256, 2048};
  info.kernel_traces = {
      {.source = "ftrace", .vcpu = {DomainId{3}, VcpuId{1}}, .read = 77, .lost = 5}};
  info.events = {
      {.name = "cpu_clk_unhalted", .code = 0x76, .period = 100000, .clocked_by = "pmu"},
      {.name = "vcpu-preempted", .period = 9200000, .clocked_by = "vcpu:250", .waiting = true}};
  info.events[0].nmis = NmiCounters{10, 7, 2, 1};
  info.events[0].modes = ModeSet{.user = true, .xen = true};
  info.events[0].source = "xenoprof";
  StreamInfo stream;
  stream.source = "xenoprof";
  stream.vcpu = {DomainId{3}, VcpuId{1}};
  stream.logged = {1, 2, 3, 4};
  stream.drained = 6;
  stream.kept = 4;
  stream.other_counters = 2;
  stream.complete = true;
  StreamInfo looked;
  looked.source = "vcpu";
  looked.polls = PollCounters{.total = 9,
                              .blocked = 1,
                              .running = 2,
                              .preempted = 3,
                              .failed = 3,
                              .stopped_cycles = 700,
                              .longest_stop = 90,
                              .callers = 5,
                              .cut_chains = 1,
                              .gone = true};
  StreamInfo rung;
  rung.source = "perf";
  rung.drained = 12;
  rung.kept = 3;
  rung.other_modes = 4;
  rung.callers = 5;
  rung.ring = RingCounters{2, 1, 40};
  info.streams = {stream, looked, rung};
  info.trace = TraceInfo{"all", 0x0ffff000, 32};
  info.symbols = {{SymbolFile::Kind::kXensyms, kDom0, "symbols/xensyms", "/proc/xen/xensyms"}};
  return info;
}

constexpr VcpuRef kD3V1{DomainId{3}, VcpuId{1}};

Entry MakeEntry(Address address, Mode mode) {
  Entry entry;
  entry.address = address;
  entry.mode = static_cast<uint8_t>(mode);
  return entry;
}

// Writes two drains of d3v1: two samples, then one.
void WriteTwoDrains(const Writer& writer) {
  auto samples = writer.CreateSamples("xenoprof");
  ASSERT_TRUE(samples.ok()) << samples.status();
  samples->Append(kD3V1, {Tsc{1000}, Tsc{2000}, Tsc{2010}},
                  std::array{MakeEntry(0x10, Mode::kUser), MakeEntry(0x20, Mode::kKernel)});
  ASSERT_TRUE(samples->Flush().ok());
  samples->Append(kD3V1, {Tsc{2000}, Tsc{3000}, Tsc{3010}},
                  std::array{MakeEntry(0x30, Mode::kXen)});
  ASSERT_TRUE(samples->Flush().ok());
}

struct ReadBack {
  std::vector<Address> addresses;
  SampleDamage damage;
};

ReadBack ReadSamples(const Recording& recording) {
  ReadBack result;
  auto stream = recording.OpenSamples(0);
  EXPECT_TRUE(stream.ok()) << stream.status();
  if (!stream.ok()) return result;
  while (const Sample* sample = stream->reader.Next()) result.addresses.push_back(sample->address);
  result.damage = stream->reader.damage();
  return result;
}

TEST_F(RecordingTest, InfoRoundTripsThroughJson) {
  const RecordingInfo info = SmallInfo();
  const auto back = FromJson(ToJson(info));
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, info);
}

TEST_F(RecordingTest, RefusesNewerMajorVersion) {
  RecordingInfo info = SmallInfo();
  info.format = {2, 1};
  const auto back = FromJson(ToJson(info));
  EXPECT_THAT(std::string(Message(back.status())), HasSubstr("use a newer xenoscope"));
}

TEST_F(RecordingTest, ReadsNewerMinorVersionAndUnknownKeys) {
  EXPECT_TRUE(FromJson(R"({"format": {"major": 1, "minor": 99}, "moon": "full"})").ok());
}

TEST_F(RecordingTest, JsonErrorNamesItsPlace) {
  EXPECT_THAT(std::string(Message(FromJson("{\"format\": ").status())), HasSubstr("at byte"));
  EXPECT_THAT(std::string(Message(FromJson("[]").status())), HasSubstr("not an object"));
  const auto wrong = FromJson(R"({"format": {"major": 1}, "domains": [{"id": 70000}]})");
  EXPECT_THAT(std::string(Message(wrong.status())), HasSubstr("domains[0].id"));
}

TEST_F(RecordingTest, ReadsModesOfEvents) {
  const auto read = [](const std::string& event) {
    const auto info = FromJson(R"({"format": {"major": 1}, "events": [)" + event + "]}");
    EXPECT_TRUE(info.ok()) << info.status();
    return info->events.at(0);
  };
  const EventInfo old = read(R"({"name": "cycles"})");
  EXPECT_EQ(old.modes, std::nullopt);
  EXPECT_EQ(old.source, "");
  const EventInfo now = read(R"({"modes": ["kernel", "firmware"], "source": "perf"})");
  EXPECT_EQ(now.modes, (ModeSet{.kernel = true}));
  EXPECT_EQ(now.source, "perf");
  EXPECT_EQ(read(R"({"modes": []})").modes, ModeSet{});
  const auto wrong = FromJson(R"({"format": {"major": 1}, "events": [{"modes": "user"}]})");
  EXPECT_THAT(std::string(Message(wrong.status())), HasSubstr("events[0].modes"));
}

TEST_F(RecordingTest, WritesNamesThatAreNotUtf8) {
  RecordingInfo info = SmallInfo();
  info.domains[1].name = "\xff\xfe";
  EXPECT_TRUE(FromJson(ToJson(info)).ok());
}

// Returns a file of samples with what `fill` appends, as bytes.
template <typename F>
std::string SamplesWith(const std::string& path, F fill) {
  auto writer = SampleWriter::Create(path);
  EXPECT_TRUE(writer.ok());
  fill(*writer);
  EXPECT_TRUE(writer->Flush().ok());
  return Read(path);
}

TimedEntry MakeTimed(Address address, uint64_t begin) {
  TimedEntry entry;
  entry.address = address;
  entry.vcpu = 3;
  entry.pid = 70;
  entry.tid = 71;
  entry.begin = begin;
  entry.end = begin + 5;
  return entry;
}

TEST_F(RecordingTest, WritesFinishedChunksUnchanged) {
  const auto writer = Writer::Create(Path("a.xeno"));
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(writer->WriteInfo(SmallInfo()).ok());
  auto samples = writer->CreateSamples("xenoprof");
  ASSERT_TRUE(samples.ok()) << samples.status();
  SampleWriter elsewhere = SampleWriter::InMemory();
  for (const Address address : {0x10, 0x20, 0x30}) {
    elsewhere.Append(kD3V1, {Tsc{1000}, Tsc{2000}, Tsc{2010}},
                     std::array{MakeEntry(address, Mode::kUser)});
    samples->Append(elsewhere.Take());
  }
  ASSERT_TRUE(samples->Flush().ok());
  const auto recording = Recording::Open(Path("a.xeno"));
  ASSERT_TRUE(recording.ok()) << recording.status();
  EXPECT_THAT(ReadSamples(*recording).addresses, ElementsAre(0x10, 0x20, 0x30));
}

TEST_F(RecordingTest, TimedSamplesRoundTripWithThreadAndCallers) {
  const std::string bytes = SamplesWith(Path("perf.samples"), [](SampleWriter& writer) {
    TimedChunk chunk;
    TimedEntry entry = MakeTimed(0xffff'ffff'8100'0000, 100);
    entry.mode = 1;
    entry.event = 1;
    entry.kernel_callers = 1;
    entry.user_callers = 2;
    chunk.Add(entry, std::array<Address, 3>{0xffff'ffff'8100'0010, 0x10, 0x20});
    entry = MakeTimed(0x30, 200);
    entry.pid = kNoThread;
    chunk.Add(entry, {});
    writer.Append(DomainId{3}, chunk);
  });
  auto reader = SampleReader::Open(AsBytes(bytes), 2);
  ASSERT_TRUE(reader.ok());
  const Sample* first = reader->Next();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->vcpu, (VcpuRef{DomainId{3}, VcpuId{3}}));
  EXPECT_EQ(first->mode, Mode::kKernel);
  EXPECT_EQ(first->event, 1);
  EXPECT_EQ(first->when, (TscRange{Tsc{100}, Tsc{105}}));
  EXPECT_EQ(first->thread, (Thread{70, 71}));
  ASSERT_EQ(first->callers.size(), 3);
  EXPECT_EQ(first->callers.at(0), 0xffff'ffff'8100'0010);
  EXPECT_EQ(first->callers.ModeAt(0), Mode::kKernel);
  EXPECT_EQ(first->callers.at(2), 0x20);
  EXPECT_EQ(first->callers.ModeAt(2), Mode::kUser);
  EXPECT_TRUE(first->timed);
  const Sample* second = reader->Next();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->address, 0x30);
  EXPECT_FALSE(second->thread || second->timed);
  EXPECT_TRUE(second->callers.empty());
  EXPECT_FALSE(reader->Next());
  EXPECT_FALSE(reader->damage().Any());
}

TEST_F(RecordingTest, CountsImpossibleTimedSamples) {
  const std::string bytes = SamplesWith(Path("perf.samples"), [](SampleWriter& writer) {
    TimedChunk chunk;
    TimedEntry entry = MakeTimed(1, 100);
    entry.mode = 7;
    chunk.Add(entry, {});
    entry = MakeTimed(2, 100);
    entry.end = entry.begin;
    chunk.Add(entry, {});
    chunk.Add(MakeTimed(3, 100), {});
    entry = MakeTimed(4, 100);
    entry.user_callers = 9;  // more than there are
    chunk.Add(entry, {});
    chunk.Add(MakeTimed(5, 100), {});
    writer.Append(kDom0, chunk);
    TimedChunk other;
    other.Add(MakeTimed(6, 100), {});
    writer.Append(kDom0, other);
  });
  auto reader = SampleReader::Open(AsBytes(bytes), 1);
  std::vector<Address> addresses;
  while (const auto sample = reader->Next()) addresses.push_back(sample->address);
  EXPECT_THAT(addresses, ElementsAre(3, 6));
  EXPECT_EQ(reader->damage().invalid_samples, 4);  // the last two cannot be distinguished
}

TEST_F(RecordingTest, PagesOfAKernelsTraceAreNoSamples) {
  const std::vector<std::byte> pages(size_t{2} * 4096, std::byte{7});
  const std::string bytes = SamplesWith(Path("ftrace.samples"), [&](SampleWriter& writer) {
    writer.AppendTraceFormats(kDom0, "# header_page");
    writer.AppendTracePages({kDom0, VcpuId{1}}, {Tsc{1}, Tsc{2}, Tsc{3}}, 4096, pages);
  });
  auto samples = SampleReader::Open(AsBytes(bytes), 1);
  ASSERT_TRUE(samples.ok());
  EXPECT_EQ(samples->Next(), nullptr);
  EXPECT_FALSE(samples->damage().Any());

  auto chunks = ChunkReader::Open(AsBytes(bytes));
  ASSERT_TRUE(chunks.ok());
  const auto formats = chunks->Next();
  ASSERT_TRUE(formats);
  EXPECT_EQ(AsText(formats->entries), "# header_page");
  const auto chunk = chunks->Next();
  ASSERT_TRUE(chunk);
  EXPECT_EQ(chunk->header.vcpu, 1U);
  EXPECT_EQ(chunk->header.count, 2U);
  EXPECT_EQ(chunk->header.before, 2U);
  EXPECT_EQ(chunk->entries.size(), pages.size());
}

TEST_F(RecordingTest, ProcessRecordsRoundTripBesideSamples) {
  const std::array<uint8_t, 3> id{1, 2, 3};
  const std::string bytes = SamplesWith(Path("perf.samples"), [&](SampleWriter& writer) {
    ProcessChunk chunk;
    ProcessEntry entry;
    entry.type = static_cast<uint8_t>(ProcessEntryType::kName);
    entry.flags = kByExec;
    entry.pid = 5;
    entry.tid = 6;
    entry.when = 77;
    chunk.Add(entry, nullptr, "sh");
    MapEntry map;
    map.address = 0x1000;
    map.length = 0x200;
    map.offset = 0x40;
    map.build_id_size = id.size();
    std::copy(id.begin(), id.end(), map.build_id.begin());
    entry.type = static_cast<uint8_t>(ProcessEntryType::kMap);
    entry.flags = kAtStart;
    chunk.Add(entry, &map, std::string(5000, 'x'));
    map.length = ~uint64_t{0};  // beyond the end of all memory
    chunk.Add(entry, &map, "/bin/sh");
    entry.type = 99;
    chunk.Add(entry, nullptr, "");
    writer.Append(DomainId{3}, chunk);
    TimedChunk samples;
    samples.Add(MakeTimed(1, 100), {});
    writer.Append(kDom0, samples);
  });
  auto reader = ProcessReader::Open(AsBytes(bytes));
  ASSERT_TRUE(reader.ok());
  const auto name = reader->Next();
  ASSERT_TRUE(name);
  EXPECT_EQ(name->type, ProcessEntryType::kName);
  EXPECT_TRUE(name->by_exec);
  EXPECT_EQ(name->domain, DomainId{3});
  EXPECT_EQ(name->tid, 6);
  EXPECT_EQ(name->when, Tsc{77});
  EXPECT_EQ(name->text, "sh");
  const auto map = reader->Next();
  ASSERT_TRUE(map);
  EXPECT_EQ(map->map.begin, 0x1000);
  EXPECT_EQ(map->map.end, 0x1200);
  EXPECT_EQ(map->map.offset, 0x40);
  EXPECT_EQ(map->map.build_id.size(), 3);
  EXPECT_TRUE(map->at_start);
  EXPECT_EQ(map->text, std::string(ProcessChunk::kMaxTextBytes, 'x'));
  EXPECT_FALSE(reader->Next());
  EXPECT_EQ(reader->invalid(), 2);
  auto samples = SampleReader::Open(AsBytes(bytes), 1);
  EXPECT_TRUE(samples->Next());
  EXPECT_FALSE(samples->Next());
  EXPECT_FALSE(samples->damage().Any());
}

TEST_F(RecordingTest, IdOfFileCanFollowItsMaps) {
  const std::string bytes = SamplesWith(Path("perf.samples"), [&](SampleWriter& writer) {
    ProcessEntry entry;
    entry.type = static_cast<uint8_t>(ProcessEntryType::kMap);
    entry.pid = entry.tid = 5;
    entry.parent = 7;
    MapEntry map;
    map.address = 0x1000;
    map.length = 0x200;
    ProcessChunk chunk;
    chunk.Add(entry, &map, "/usr/bin/go-program");
    entry.type = static_cast<uint8_t>(ProcessEntryType::kFileId);
    MapEntry id;
    id.build_id_size = 2;
    id.build_id = {0xab, 0xcd};
    chunk.Add(entry, &id, "/usr/bin/go-program");
    chunk.Add(entry, &map, "");  // an id has no memory
    id.build_id_size = 24;       // more than there is room for
    chunk.Add(entry, &id, "");
    chunk.Add(entry, nullptr, "");
    writer.Append(kDom0, chunk);
  });
  auto reader = ProcessReader::Open(AsBytes(bytes));
  ASSERT_TRUE(reader.ok());
  const auto map = reader->Next();
  ASSERT_TRUE(map);
  EXPECT_EQ(map->file, 7);
  EXPECT_TRUE(map->map.build_id.empty());
  const auto id = reader->Next();
  ASSERT_TRUE(id);
  EXPECT_EQ(id->type, ProcessEntryType::kFileId);
  EXPECT_EQ(id->file, 7);
  EXPECT_EQ(id->map.build_id.size(), 2);
  EXPECT_EQ(id->text, "/usr/bin/go-program");
  EXPECT_FALSE(reader->Next());
  EXPECT_EQ(reader->invalid(), 3);
}

TEST_F(RecordingTest, BehalfIsOfProcessesOfDom0) {
  const auto add = [](SampleWriter& writer, DomainId of, uint32_t behalf) {
    ProcessEntry entry;
    entry.type = static_cast<uint8_t>(ProcessEntryType::kBehalf);
    entry.pid = entry.tid = 5;
    entry.parent = behalf;
    ProcessChunk chunk;
    chunk.Add(entry, nullptr, "");
    writer.Append(of, chunk);
  };
  const std::string bytes = SamplesWith(Path("perf.samples"), [&](SampleWriter& writer) {
    add(writer, DomainId{3}, 2);  // a guest's process
    add(writer, kDom0, 0x7ff0);   // no domain
    add(writer, kDom0, 0x10002);
    add(writer, kDom0, 2);
  });
  auto reader = ProcessReader::Open(AsBytes(bytes));
  ASSERT_TRUE(reader.ok());
  const auto behalf = reader->Next();
  ASSERT_TRUE(behalf);
  EXPECT_EQ(behalf->type, ProcessEntryType::kBehalf);
  EXPECT_EQ(behalf->pid, 5);
  EXPECT_EQ(behalf->behalf, DomainId{2});
  EXPECT_FALSE(reader->Next());
  EXPECT_EQ(reader->invalid(), 3);
}

TEST_F(RecordingTest, SamplesRoundTripInOrderWithBrackets) {
  const auto writer = Writer::Create(Path("a.xeno"));
  ASSERT_TRUE(writer.ok()) << writer.status();
  ASSERT_TRUE(writer->WriteInfo(SmallInfo()).ok());
  WriteTwoDrains(*writer);
  const auto recording = Recording::Open(Path("a.xeno"));
  ASSERT_TRUE(recording.ok()) << recording.status();
  auto stream = recording->OpenSamples(0);
  ASSERT_TRUE(stream.ok()) << stream.status();
  std::vector<Sample> samples;
  while (const Sample* sample = stream->reader.Next()) samples.push_back(*sample);
  ASSERT_EQ(samples.size(), 3);
  EXPECT_EQ(samples[0].vcpu, kD3V1);
  EXPECT_EQ(samples[0].address, 0x10);
  EXPECT_EQ(samples[0].mode, Mode::kUser);
  EXPECT_EQ(samples[1].when, (TscRange{Tsc{1000}, Tsc{2010}}));
  EXPECT_EQ(samples[2].mode, Mode::kXen);
  EXPECT_EQ(samples[2].when, (TscRange{Tsc{2000}, Tsc{3010}}));
  EXPECT_FALSE(stream->reader.damage().Any());
}

TEST_F(RecordingTest, TruncatedFileKeepsCompleteDrains) {
  const auto writer = Writer::Create(Path("a.xeno"));
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->WriteInfo(SmallInfo()).ok());
  WriteTwoDrains(*writer);
  const std::string file = Path("a.xeno/samples/xenoprof.samples");
  const std::string whole = Read(file);
  const size_t first_ends = 16 + 56 + 2 * 16;
  ASSERT_EQ(whole.size(), first_ends + 56 + 16);
  const auto recording = Recording::Open(Path("a.xeno"));
  ASSERT_TRUE(recording.ok());
  for (size_t length = 16; length < whole.size(); ++length) {
    Write(file, whole.substr(0, length));
    const ReadBack back = ReadSamples(*recording);
    EXPECT_EQ(back.addresses.size(), length < first_ends ? 0 : 2) << length;
    const bool clean = length == 16 || length == first_ends;
    EXPECT_EQ(back.damage.Any(), !clean) << length;
    EXPECT_EQ(back.damage.torn_bytes, clean ? 0 : length - (length < first_ends ? 16 : first_ends));
  }
}

TEST_F(RecordingTest, FlippedByteDamagesOneChunk) {
  const auto writer = Writer::Create(Path("a.xeno"));
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->WriteInfo(SmallInfo()).ok());
  WriteTwoDrains(*writer);
  const std::string file = Path("a.xeno/samples/xenoprof.samples");
  const std::string whole = Read(file);
  const auto recording = Recording::Open(Path("a.xeno"));
  ASSERT_TRUE(recording.ok());
  for (size_t at = 16; at < 16 + 56 + 2 * 16; ++at) {  // anywhere in the first chunk
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x40);
    Write(file, damaged);
    const ReadBack back = ReadSamples(*recording);
    EXPECT_THAT(back.addresses, ElementsAre(0x30)) << at;
    EXPECT_EQ(back.damage.skipped_bytes, 56 + 2 * 16) << at;
  }
}

TEST_F(RecordingTest, RenamesEarlierRecordingToOld) {
  for (int i = 0; i < 3; ++i) {
    const auto writer = Writer::Create(Path("a.xeno"));
    ASSERT_TRUE(writer.ok()) << writer.status();
    RecordingInfo info = SmallInfo();
    info.written_by = std::to_string(i);
    ASSERT_TRUE(writer->WriteInfo(info).ok());
  }
  EXPECT_EQ(Recording::Open(Path("a.xeno"))->info().written_by, "2");
  EXPECT_EQ(Recording::Open(Path("a.xeno.old"))->info().written_by, "1");
}

TEST_F(RecordingTest, AbandoningRestoresEarlierRecording) {
  RecordingInfo info = SmallInfo();
  ASSERT_TRUE(Writer::Create(Path("a.xeno"))->WriteInfo(info).ok());
  const auto second = Writer::Create(Path("a.xeno"));
  ASSERT_TRUE(second.ok());
  second->Abandon();
  EXPECT_TRUE(Recording::Open(Path("a.xeno")).ok());
  EXPECT_FALSE(fs::exists(Path("a.xeno.old")));
}

TEST_F(RecordingTest, DoesNotRenameOtherDirectories) {
  fs::create_directory(Path("home"));
  Write(Path("home/letter"), "dear");
  EXPECT_THAT(std::string(Message(Writer::Create(Path("home")).status())),
              HasSubstr("not a recording"));
  EXPECT_EQ(Read(Path("home/letter")), "dear");
  Write(Path("file"), "x");
  EXPECT_FALSE(Writer::Create(Path("file")).ok());
}

TEST_F(RecordingTest, DoesNotFollowLinkOfItsName) {
  ASSERT_TRUE(Writer::Create(Path("victim"))->WriteInfo(SmallInfo()).ok());
  for (const std::string name : {"a.xeno", "b.xeno.old"}) {
    fs::create_symlink("victim", Path(name));
  }
  EXPECT_THAT(std::string(Message(Writer::Create(Path("a.xeno")).status())),
              HasSubstr("not a recording"));
  ASSERT_TRUE(Writer::Create(Path("b.xeno"))->WriteInfo(SmallInfo()).ok());
  EXPECT_THAT(std::string(Message(Writer::Create(Path("b.xeno")).status())),
              HasSubstr("b.xeno.old is in the way"));
  EXPECT_TRUE(Recording::Open(Path("victim")).ok());
  EXPECT_TRUE(Recording::Open(Path("b.xeno")).ok());
}

TEST_F(RecordingTest, RemovesRemainsOfKilledRecording) {
  ASSERT_TRUE(Writer::Create(Path("a.xeno"))->WriteInfo(SmallInfo()).ok());
  {
    const auto killed = Writer::Create(Path("a.xeno"));  // the earlier one is a.xeno.old now
    ASSERT_TRUE(killed.ok()) << killed.status();
    ASSERT_TRUE(killed->AddSymbols(SymbolFile::Kind::kKallsyms, kDom0, "/proc/version").ok());
    ASSERT_TRUE(killed->CreateSamples("xenoprof").ok());
    ASSERT_TRUE(killed->CreateTrace().ok());
  }
  const auto next = Writer::Create(Path("a.xeno"));
  ASSERT_TRUE(next.ok()) << next.status();
  ASSERT_TRUE(next->WriteInfo(SmallInfo()).ok());
  EXPECT_TRUE(Recording::Open(Path("a.xeno")).ok());
  EXPECT_TRUE(Recording::Open(Path("a.xeno.old")).ok());  // its only predecessor is kept
}

TEST_F(RecordingTest, FilesAreReadableByOwnerOnly) {
  const mode_t before = umask(0);
  const auto writer = Writer::Create(Path("a.xeno"));
  ASSERT_TRUE(writer.ok());
  WriteTwoDrains(*writer);
  ASSERT_TRUE(writer->CreateTrace().ok());
  for (const auto kind : {SymbolFile::Kind::kKallsyms, SymbolFile::Kind::kLivepatches}) {
    ASSERT_TRUE(writer->AddSymbols(kind, kDom0, "/proc/version").ok());
  }
  ASSERT_TRUE(
      writer->AddSymbolContent(SymbolFile::Kind::kKallsyms, DomainId{3}, AsBytes("x"), "agent")
          .ok());
  ASSERT_TRUE(writer->WriteInfo(SmallInfo()).ok());
  ASSERT_TRUE(PackRecording(Path("a.xeno"), {}, Path("a.tar.zst")).ok());
  ASSERT_TRUE(UnpackRecording(Path("a.tar.zst"), Path("b.xeno")).ok());
  umask(before);
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
    const auto wanted = entry.is_directory() ? fs::perms::owner_all
                                             : fs::perms::owner_read | fs::perms::owner_write;
    EXPECT_EQ(entry.status().permissions(), wanted) << entry.path();
    files += entry.is_directory() ? 0 : 1;
  }
  EXPECT_EQ(files,
            1 + 2 * 7);  // the archive; .reserve, recording.json, trace, samples, 3 of symbols
}

TEST_F(RecordingTest, UnaccountedEntriesAreNoLossWhileRecording) {
  struct Case {
    bool complete;
    uint64_t drained, kept;
    bool balanced;
  };
  for (const Case& c : {Case{false, 7, 5, true}, Case{false, 5, 7, false}, Case{true, 7, 5, false},
                        Case{true, 7, 7, true}}) {
    StreamInfo stream;
    stream.complete = c.complete;
    stream.logged.user = stream.drained = c.drained;
    stream.kept = c.kept;
    EXPECT_EQ(stream.Balanced(), c.balanced) << c.complete << c.drained << c.kept;
  }
}

TEST_F(RecordingTest, ReadsCompressedFiles) {
  const auto writer = Writer::Create(Path("a.xeno"));
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->WriteInfo(SmallInfo()).ok());
  WriteTwoDrains(*writer);
  Write(writer->TracePath(), "trace bytes");
  for (const std::string& name : {writer->TracePath(), Path("a.xeno/samples/xenoprof.samples")}) {
    const std::string plain = Read(name);
    std::string packed(ZSTD_compressBound(plain.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 3));
    Write(name + ".zst", packed);
    fs::remove(name);
  }
  const auto recording = Recording::Open(Path("a.xeno"));
  ASSERT_TRUE(recording.ok());
  EXPECT_THAT(ReadSamples(*recording).addresses, ElementsAre(0x10, 0x20, 0x30));
  const auto trace = recording->OpenTrace();
  ASSERT_TRUE(trace.ok()) << trace.status();
  EXPECT_EQ(Read(trace->path()), "trace bytes");
}

// Returns a frame of so many zeros.
std::string Bomb(size_t size) {
  const std::string plain(size, '\0');
  std::string packed(ZSTD_compressBound(size), '\0');
  packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), size, 1));
  return packed;
}

TEST_F(RecordingTest, RefusesFilesBeyondTheDecompressionLimit) {
  Write(Path("small.zst"), Bomb(size_t{60} << 20));
  {
    const auto small = PlainFile::Open(Path("small"));
    ASSERT_TRUE(small.ok()) << small.status();
    EXPECT_EQ(fs::file_size(small->path()), size_t{60} << 20);
    // A file that may grow so much may not do so several times at once.
    EXPECT_EQ(PlainFile::Open(Path("small")).status().code(), absl::StatusCode::kResourceExhausted);
  }
  Write(Path("large.zst"), Bomb(size_t{100} << 20));
  const absl::Status status = PlainFile::Open(Path("large")).status();
  EXPECT_THAT(std::string(Message(status)), HasSubstr(Path("large.zst")));
  EXPECT_THAT(std::string(Message(status)), HasSubstr("XENOSCOPE_MAX_UNPACKED"));
  setenv("XENOSCOPE_MAX_UNPACKED", "1G", 1);
  EXPECT_TRUE(PlainFile::Open(Path("large")).ok());
  unsetenv("XENOSCOPE_MAX_UNPACKED");
}

TEST_F(RecordingTest, ErrorNamesMissingFile) {
  const auto writer = Writer::Create(Path("a.xeno"));
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->WriteInfo(SmallInfo()).ok());
  const auto recording = Recording::Open(Path("a.xeno"));
  ASSERT_TRUE(recording.ok());
  EXPECT_EQ(recording->OpenTrace().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(recording->OpenSamples(0).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(Recording::Open(Path("b.xeno")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(recording->OpenSymbols({SymbolFile::Kind::kImage, kDom0, "../../etc/passwd", ""})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

TEST_F(RecordingTest, IncompleteRecordingIsMarked) {
  const auto writer = Writer::Create(Path("a.xeno"));
  ASSERT_TRUE(writer.ok());
  ASSERT_TRUE(writer->WriteInfo(SmallInfo()).ok());
  const auto recording = Recording::Open(Path("a.xeno"));
  ASSERT_TRUE(recording.ok());
  EXPECT_THAT(recording->warnings(), ElementsAre(HasSubstr("cut off"), "web: its agent was late"));
}

std::vector<DomainChange> TwoChanges() {
  return {{DomainChange::Kind::kVcpuOffline, DomainId{3}, VcpuId{1}, {Tsc{2000}, Tsc{2100}}},
          {DomainChange::Kind::kDestroyed, DomainId{3}, std::nullopt, {Tsc{5000}, Tsc{5100}}}};
}

TEST_F(RecordingTest, AppendsChangesToTheirOwnFile) {
  auto writer = Writer::Create(Path("a.xeno"));
  ASSERT_TRUE(writer.ok());
  RecordingInfo info = SmallInfo();
  info.state = State::kComplete;
  info.changes = TwoChanges();
  for (const DomainChange& change : info.changes) {
    ASSERT_TRUE(writer->AppendChanges({&change, 1}).ok());
  }
  ASSERT_TRUE(writer->WriteInfo(info).ok());
  EXPECT_THAT(Read(Path("a.xeno/recording.json")), Not(HasSubstr("vcpu_offline")));
  EXPECT_EQ(Read(Path("a.xeno/changes.jsonl")),
            R"({"kind":"vcpu_offline","domain":3,"vcpu":1,"begin_tsc":2000,"end_tsc":2100})"
            "\n"
            R"({"kind":"destroyed","domain":3,"begin_tsc":5000,"end_tsc":5100})"
            "\n");
  const auto recording = Recording::Open(Path("a.xeno"));
  ASSERT_TRUE(recording.ok());
  EXPECT_EQ(recording->info().changes, TwoChanges());
  // Problems of a source are for the user.
  EXPECT_THAT(recording->warnings(), ElementsAre("web: its agent was late"));
}

TEST_F(RecordingTest, ReadsChangesOfEarlierVersions) {
  const auto info = FromJson(
      R"({"format": {"major": 1, "minor": 6}, "changes": [
           {"kind": "vcpu_offline", "domain": 3, "vcpu": 1, "begin_tsc": 2000, "end_tsc": 2100},
           {"kind": "destroyed", "domain": 3, "begin_tsc": 5000, "end_tsc": 5100}]})");
  ASSERT_TRUE(info.ok()) << info.status();
  EXPECT_EQ(info->changes, TwoChanges());
}

TEST_F(RecordingTest, CountsTruncatedChange) {
  const std::string whole = ToJsonLine(TwoChanges()[0]) + "\n";
  struct Case {
    std::string text;
    size_t changes;
    uint64_t damaged;
  };
  std::vector<Case> cases = {{"", 0, 0},
                             {whole, 1, 0},
                             {whole + "{}}\n" + whole, 2, 1},
                             {"\n" + whole, 1, 1},
                             {std::string(1000, '['), 0, 1}};
  for (size_t cut = 1; cut < whole.size(); ++cut) {
    cases.push_back({whole + whole.substr(0, cut), 1, 1});
  }
  for (const Case& each : cases) {
    const ReadChanges read = ParseChanges(each.text);
    EXPECT_EQ(read.changes.size(), each.changes) << each.text;
    EXPECT_EQ(read.damaged, each.damaged) << each.text;
  }
}

TEST_F(RecordingTest, CopiesSymbolFiles) {
  const auto writer = Writer::Create(Path("a.xeno"));
  ASSERT_TRUE(writer.ok());
  Write(Path("gw"), "elf");
  const auto first = writer->AddSymbols(SymbolFile::Kind::kImage, DomainId{3}, Path("gw"));
  const auto second = writer->AddSymbols(SymbolFile::Kind::kImage, DomainId{3}, Path("gw"));
  const auto kallsyms = writer->AddSymbols(SymbolFile::Kind::kKallsyms, kDom0, "/proc/version");
  ASSERT_TRUE(first.ok() && second.ok() && kallsyms.ok());
  EXPECT_EQ(first->path, "guests/3/gw");
  EXPECT_EQ(second->path, "guests/3/gw.2");
  EXPECT_EQ(kallsyms->path, "symbols/dom0.kallsyms");
  EXPECT_NE(Read(Path("a.xeno/symbols/dom0.kallsyms")), "");
}

TEST_F(RecordingTest, SamplesOfPausedVcpusKeepThePause) {
  auto writer = SampleWriter::Create(Path("x.samples"));
  ASSERT_TRUE(writer.ok());
  writer->AppendStopped(kD3V1, {Tsc{100}, Tsc{140}}, MakeEntry(0x10, Mode::kKernel));
  writer->Append(kD3V1, {Tsc{1}, Tsc{2}, Tsc{150}}, std::array{MakeEntry(0x20, Mode::kXen)});
  ASSERT_TRUE(writer->Flush().ok());
  const std::string bytes = Read(Path("x.samples"));
  auto reader = SampleReader::Open(std::as_bytes(std::span(bytes)), 1);
  ASSERT_TRUE(reader.ok());
  const auto stopped = reader->Next();
  ASSERT_TRUE(stopped);
  EXPECT_TRUE(stopped->stopped);
  EXPECT_EQ(stopped->vcpu, kD3V1);
  EXPECT_EQ(stopped->when, (TscRange{Tsc{100}, Tsc{140}}));
  const auto drained = reader->Next();
  ASSERT_TRUE(drained);
  EXPECT_FALSE(drained->stopped);
  EXPECT_FALSE(reader->Next());
}

TEST_F(RecordingTest, FailedWriteLeavesAValidFile) {
  auto samples = SampleWriter::Create(Path("x.samples"));
  ASSERT_TRUE(samples.ok());
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  (void)std::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit{300, before.rlim_max};  // room for the header and three chunks and a bit
  setrlimit(RLIMIT_FSIZE, &limit);
  absl::Status status;
  int flushed = 0;
  for (; status.ok() && flushed < 10; ++flushed) {
    samples->Append(kD3V1, {Tsc{1}, Tsc{2}, Tsc{3}}, std::array{MakeEntry(0x10, Mode::kUser)});
    status = samples->Flush();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  EXPECT_EQ(flushed, 4);
  EXPECT_FALSE(status.ok());
  EXPECT_EQ(fs::file_size(Path("x.samples")), 16 + 3 * (56 + 16));
  EXPECT_EQ(samples->bytes_written(), 16 + 3 * (56 + 16));
}

}  // namespace
}  // namespace xenoscope::recording
