// A kernel's events as a recording has them, which tests make.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "guests/ftrace/kernel_trace.h"
#include "recording/sample_writer.h"
#include "tests/unit/guests/ftrace/page_builder.h"

namespace xenoscope::guests {

class RecordedKernel {
 public:
  explicit RecordedKernel(DomainId domain = kDom0) : domain_(domain) {
    const recording::FileHeader header;
    const auto bytes = std::as_bytes(std::span(&header, 1));
    file_.assign(bytes.begin(), bytes.end());
    writer_.AppendTraceFormats(domain_, kSwitchFormats);
  }
  // `cgroup` is of the process; empty: not known.
  RecordedKernel& Thread(uint32_t pid, uint32_t tid, const std::string& name,
                         const std::string& cgroup = "") {
    recording::ProcessChunk chunk;
    recording::ProcessEntry entry;
    entry.pid = pid;
    entry.tid = tid;
    entry.type = static_cast<uint8_t>(recording::ProcessEntryType::kThread);
    chunk.Add(entry, nullptr, name);
    entry.type = static_cast<uint8_t>(recording::ProcessEntryType::kCgroup);
    if (!cgroup.empty()) chunk.Add(entry, nullptr, cgroup);
    writer_.Append(domain_, chunk);
    return *this;
  }
  RecordedKernel& Page(uint32_t cpu, const std::vector<std::byte>& page) {
    writer_.AppendTracePages({domain_, VcpuId{cpu}}, {}, PageBuilder::kSize, page);
    return *this;
  }
  recording::SampleWriter& writer() { return writer_; }

  // Returns the trace, which lives as long as this.
  const KernelTrace& Open() {
    const std::vector<std::byte> chunks = writer_.Take();
    file_.insert(file_.end(), chunks.begin(), chunks.end());
    auto opened = KernelTrace::Open(file_, domain_);
    EXPECT_TRUE(opened.ok() && *opened) << opened.status();
    kernel_ = **std::move(opened);
    return *kernel_;
  }

 private:
  DomainId domain_;
  recording::SampleWriter writer_ = recording::SampleWriter::InMemory();
  std::vector<std::byte> file_;
  std::optional<KernelTrace> kernel_;
};

// Records: "web" runs, sleeps, is woken by "db", and runs again.
inline RecordedKernel& RecordShop(RecordedKernel& kernel) {
  return kernel.Thread(7, 7, "web", "/shop.service")
      .Page(0, PageBuilder(100)
                   .Switch(0, 0, 0, 7, "web")          // 100
                   .Switch(150, 7, kSleep, 8, "db")    // 250
                   .Waking(200, 8, 7, "web")           // 450
                   .Switch(50, 8, kSleep, 7, "web")    // 500
                   .Switch(100, 7, kSleep, 0, "idle")  // 600
                   .Page());
}

}  // namespace xenoscope::guests
