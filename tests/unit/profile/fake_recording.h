// Small recordings, for tests: samples with times of their own and the processes that they are of.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "recording/chunk_reader.h"
#include "recording/recording.h"
#include "recording/writer.h"

namespace xenoscope::profile {

inline constexpr DomainId kD1{1};
inline constexpr VcpuRef kD1V0{kD1, VcpuId{0}};

inline recording::EventInfo EventOf(const std::string& name, const std::string& clocked_by = "") {
  recording::EventInfo event;
  event.name = name;
  event.clocked_by = clocked_by;
  event.period = 1000;
  return event;
}

// A recording of one source of domain 1, in a directory that goes with it.
class FakeRecording {
 public:
  FakeRecording() {
    std::string name = (std::filesystem::temp_directory_path() / "profile_test.XXXXXX").string();
    EXPECT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
    info.host.clock_hz = 1'000'000'000;
    recording::DomainInfo& domain = info.domains.emplace_back();
    domain.id = kD1;
    domain.name = "web";
    info.sources.emplace_back().name = "perf";
    info.events = {EventOf("cycles")};
  }
  FakeRecording(const FakeRecording&) = delete;
  FakeRecording& operator=(const FakeRecording&) = delete;
  ~FakeRecording() { std::filesystem::remove_all(directory_); }

  // A sample that was taken within [begin, end).
  void Sample(uint64_t begin, uint64_t end, Address address, uint8_t event = 0,
              uint32_t pid = recording::kNoThread) {
    SampleOf(kD1, Mode::kKernel, begin, end, address, event, pid);
  }
  void SampleOf(DomainId domain, Mode mode, uint64_t begin, uint64_t end, Address address,
                uint8_t event = 0, uint32_t pid = recording::kNoThread) {
    recording::TimedEntry entry;
    entry.address = address;
    entry.mode = static_cast<uint8_t>(mode);
    entry.event = event;
    entry.pid = entry.tid = pid;
    entry.begin = begin;
    entry.end = end;
    recording::TimedChunk chunk;
    chunk.Add(entry, {});
    samples_.Append(domain, chunk);
  }

  // A process begins a program of that name.
  void Exec(uint64_t when, uint32_t pid, std::string_view name, DomainId domain = kD1) {
    Process({.type = static_cast<uint8_t>(recording::ProcessEntryType::kName),
             .flags = recording::kByExec,
             .pid = pid,
             .tid = pid,
             .when = when},
            name, domain);
  }
  void Fork(uint64_t when, uint32_t pid, uint32_t parent) {
    Process({.type = static_cast<uint8_t>(recording::ProcessEntryType::kFork),
             .pid = pid,
             .tid = pid,
             .parent = parent,
             .when = when},
            "", kD1);
  }

  // A process of dom0 works on behalf of the domain.
  void Behalf(uint64_t when, uint32_t pid, DomainId domain) {
    Process({.type = static_cast<uint8_t>(recording::ProcessEntryType::kBehalf),
             .pid = pid,
             .tid = pid,
             .parent = domain.value,
             .when = when},
            "", kDom0);
  }

  // A process maps a file at [begin, begin + 0x1000), whose id comes later with that number.
  void Map(uint64_t when, uint32_t pid, Address begin, std::string_view path, uint32_t file) {
    recording::MapEntry map;
    map.address = begin;
    map.length = 0x1000;
    Process({.type = static_cast<uint8_t>(recording::ProcessEntryType::kMap),
             .pid = pid,
             .tid = pid,
             .parent = file,
             .when = when},
            path, kD1, &map);
  }
  // The address space with this number maps a file of this build-id, from `offset` on, at [begin,
  // begin + 0x1000).
  void SpaceMap(uint32_t number, Address begin, uint64_t offset,
                const std::vector<uint8_t>& build_id) {
    recording::MapEntry map;
    map.address = begin;
    map.length = 0x1000;
    map.offset = offset;
    map.build_id_size = static_cast<uint8_t>(build_id.size());
    std::ranges::copy(build_id, map.build_id.begin());
    Process({.type = static_cast<uint8_t>(recording::ProcessEntryType::kSpaceMap), .pid = number},
            "", kD1, &map);
  }
  // The id, of one byte, of the file with this number.
  void FileId(uint32_t file, uint8_t id) {
    recording::MapEntry map;
    map.build_id_size = 1;
    map.build_id[0] = id;
    Process({.type = static_cast<uint8_t>(recording::ProcessEntryType::kFileId), .parent = file},
            "", kD1, &map);
  }

  // Adds samples with stacks.
  void Stacks(const recording::TimedChunk& chunk, recording::StackBlock& stacks) {
    samples_.Append(kD1, chunk, stacks);
  }
  // Adds the sample of a vCPU that dom0 stopped.
  void Stopped(const recording::TimedChunk& chunk, recording::StackBlock& stacks,
               DomainId domain = kD1) {
    samples_.AppendStopped(domain, chunk, stacks);
  }
  // Changes a byte of the chunk of this kind with that number, from 0, of those that were added
  // since the last Open.
  void Damage(recording::ChunkKind kind, int number) {
    std::vector<std::byte> all = samples_.Take();
    std::vector<std::byte> file(sizeof(recording::FileHeader));
    const recording::FileHeader header;
    std::memcpy(file.data(), &header, sizeof header);
    file.insert(file.end(), all.begin(), all.end());
    auto chunks = recording::ChunkReader::Open(file);
    ASSERT_TRUE(chunks.ok());
    while (const auto chunk = chunks->Next()) {
      if (chunk->header.kind != kind || number-- != 0) continue;
      all[chunk->at - sizeof header + sizeof chunk->header] ^= std::byte{1};
    }
    samples_.Append(all);
  }

  // The recording gets this trace. To be called once, before Open.
  void Trace(Bytes trace) {
    std::ofstream file(Path() / "trace.xentrace", std::ios::binary);
    file << AsText(trace);
    EXPECT_TRUE(file.good());
  }
  std::filesystem::path Path() {
    if (!writer_.ok()) {
      writer_ = recording::Writer::Create((directory_ / "made.xeno").string());
      EXPECT_TRUE(writer_.ok()) << writer_.status();
      file_ = writer_->CreateSamples("perf");
      EXPECT_TRUE(file_.ok()) << file_.status();
    }
    return writer_->path();
  }

  // Writes what was added since the last call, and reads all of it.
  recording::Recording Open() {
    const std::filesystem::path path = Path();
    file_->Append(samples_.Take());
    EXPECT_TRUE(file_->Flush().ok());
    EXPECT_TRUE(writer_->WriteInfo(info).ok());
    auto recording = recording::Recording::Open(path);
    EXPECT_TRUE(recording.ok()) << recording.status();
    return *std::move(recording);
  }

  recording::RecordingInfo info;

 private:
  void Process(const recording::ProcessEntry& entry, std::string_view text, DomainId domain,
               const recording::MapEntry* map = nullptr) {
    recording::ProcessChunk chunk;
    chunk.Add(entry, map, text);
    samples_.Append(domain, chunk);
  }

  std::filesystem::path directory_;
  recording::SampleWriter samples_ = recording::SampleWriter::InMemory();
  absl::StatusOr<recording::Writer> writer_ = absl::UnknownError("not made yet");
  absl::StatusOr<recording::SampleWriter> file_ = absl::UnknownError("not made yet");
};

}  // namespace xenoscope::profile
