// A simulated Linux with perf events: rings in memory, into which tests put records in the layout
// of linux/perf_event.h.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sampler/perf/perf_calls.h"

namespace xenoscope::sampler {

// The bytes of one record.
class RecordBytes {
 public:
  explicit RecordBytes(uint32_t type, uint16_t misc = 0) {
    header_.type = type;
    header_.misc = misc;
  }
  template <typename T>
  RecordBytes& Add(T value) {
    const auto* const bytes = reinterpret_cast<const std::byte*>(&value);
    body_.insert(body_.end(), bytes, bytes + sizeof value);
    return *this;
  }
  RecordBytes& Text(std::string_view text) {
    for (const char c : text) Add(c);
    do {
      Add('\0');
    } while (body_.size() % 8 != 0);
    return *this;
  }
  // Appends what sample_id_all appends.
  RecordBytes& Trailer(uint64_t time, uint32_t pid = 0, uint32_t tid = 0) {
    return Add(pid).Add(tid).Add(time).Add(uint32_t{0}).Add(uint32_t{0}).Add(uint64_t{0});
  }
  std::vector<std::byte> Done() const {
    perf_event_header header = header_;
    header.size = static_cast<uint16_t>(body_.size());
    std::vector<std::byte> all = body_;
    std::memcpy(all.data(), &header, sizeof header);
    return all;
  }

 private:
  perf_event_header header_{};
  std::vector<std::byte> body_ = std::vector<std::byte>(sizeof(perf_event_header));
};

// A ring of 4096 bytes of records.
struct FakeRing {
  static constexpr size_t kSize = 4096;
  perf_event_mmap_page page{};
  std::vector<std::byte> data = std::vector<std::byte>(kSize);

  void Put(const std::vector<std::byte>& record) {
    for (const std::byte byte : record) data[page.data_head++ % kSize] = byte;
  }
  PerfMapping Mapping() { return {&page, data.data(), kSize}; }
};

struct FakeKernel {
  struct Opened {
    perf_event_attr attributes;
    int cpu = 0;
    bool enabled = false;
    std::optional<int> redirected;
    uint64_t period = 0;
    int pid = 0;
    int leader = -1;
  };
  std::vector<uint32_t> cpus = {0, 1};
  std::map<int, Opened> open;
  std::map<int, FakeRing> rings;  // rings by file
  std::set<int> mapped;
  int next_fd = 10;
  uint64_t tsc = 1'000'000;  // each reading of it takes 10 cycles
  uint64_t time = 500'000;   // perf's clock; two cycles are one of its nanoseconds
  bool counters = false;
  bool records_branches = false;  // whether the processor records branches by calls
  std::string vpmu;               // mode of Xen's vPMU, in dom0
  bool is_pv = false;             // whether it runs in a PV domain
  int open_error = 0;             // error of opening sampled events
  int map_error = 0;
  bool knows_build_id = true;
  bool knows_lost = true;
  uint64_t lost = 0;             // count of lost samples of each event
  PerfTimedCount timed;          // what each counter has counted that takes no samples
  bool may_count_kernel = true;  // whether this user may count kernel mode
  int swallowed_marks = 0;       // number of marks to drop from now on
  static constexpr uint32_t kOwnTid = 4242;

  // Returns the ring of the CPU.
  FakeRing& RingOf(int cpu) {
    for (auto& [fd, ring] : rings) {
      if (open.at(fd).cpu == cpu) return ring;
    }
    std::abort();
  }
  uint64_t IdOf(int cpu, size_t event) const {
    size_t at = 0;
    for (const auto& [fd, opened] : open) {
      if (opened.cpu == cpu && opened.redirected && at++ == event) return 100 + fd;
    }
    std::abort();
  }
  void Advance(uint64_t nanoseconds) {
    time += nanoseconds;
    tsc += 2 * nanoseconds;
  }
};

class FakePerf final : public PerfCalls {
 public:
  explicit FakePerf(FakeKernel& kernel) : kernel_(kernel) {}

  int Open(const perf_event_attr& attributes, int pid, int cpu, int leader) override {
    const bool is_dummy = attributes.config == PERF_COUNT_SW_DUMMY;
    if (attributes.build_id != 0 && !kernel_.knows_build_id) return -EINVAL;
    if ((attributes.read_format & PERF_FORMAT_LOST) != 0 && !kernel_.knows_lost) return -EINVAL;
    if (attributes.type == PERF_TYPE_HARDWARE && !kernel_.counters) return -ENOENT;
    if ((attributes.sample_type & PERF_SAMPLE_BRANCH_STACK) != 0 && !kernel_.records_branches) {
      return -EOPNOTSUPP;
    }
    if (!is_dummy && kernel_.open_error != 0) return kernel_.open_error;
    if (!kernel_.may_count_kernel && attributes.exclude_kernel == 0) return -EACCES;
    kernel_.open[kernel_.next_fd] = {attributes, cpu, attributes.disabled == 0, {}, 0, pid, leader};
    return kernel_.next_fd++;
  }
  void Close(int fd) override { kernel_.open.erase(fd); }
  PerfMapping Map(int fd, size_t /*pages*/, int& error) override {
    error = kernel_.map_error;
    if (error != 0) return {};
    kernel_.mapped.insert(fd);
    return kernel_.rings[fd].Mapping();
  }
  void Unmap(const PerfMapping& mapping) override {
    for (auto& [fd, ring] : kernel_.rings) {
      if (&ring.page == mapping.page) kernel_.mapped.erase(fd);
    }
  }
  int Enable(int fd, bool on) override {
    kernel_.open.at(fd).enabled = on;
    return 0;
  }
  int SetPeriod(int fd, uint64_t period) override {
    kernel_.open.at(fd).period = period;
    return 0;
  }
  int RedirectTo(int fd, int ring) override {
    kernel_.open.at(fd).redirected = ring;
    return 0;
  }
  int Id(int fd, uint64_t& id) override {
    id = 100 + fd;
    return 0;
  }
  int ReadTimed(int fd, PerfTimedCount& count) override {
    const FakeKernel::Opened& opened = kernel_.open.at(fd);
    count =
        opened.enabled || opened.attributes.enable_on_exec != 0 ? kernel_.timed : PerfTimedCount();
    return 0;
  }
  int Read(int /*fd*/, PerfCount& count) override {
    count.value = kernel_.counters ? 1000 : 0;
    if (kernel_.knows_lost) count.lost = kernel_.lost;
    return 0;
  }
  void Mark() override {
    kernel_.Advance(100);
    if (kernel_.swallowed_marks > 0 && kernel_.swallowed_marks-- > 0) return;
    kernel_.rings.begin()->second.Put(RecordBytes(PERF_RECORD_COMM)
                                          .Add(FakeKernel::kOwnTid)
                                          .Add(FakeKernel::kOwnTid)
                                          .Text("xenoscope")
                                          .Trailer(kernel_.time)
                                          .Done());
    kernel_.Advance(100);
  }
  uint32_t OwnTid() const override { return FakeKernel::kOwnTid; }
  Tsc ReadTsc() override { return Tsc{kernel_.tsc += 10}; }
  std::vector<uint32_t> OnlineCpus() override { return kernel_.cpus; }
  std::string VpmuMode() override { return kernel_.vpmu; }
  bool IsInPvDomain() override { return kernel_.is_pv; }
  std::optional<uint32_t> BranchRecords() override { return 3; }
  std::optional<int64_t> Setting(const char* name) override {
    return std::string_view(name) == "paranoid" ? 3 : 50000;
  }

 private:
  FakeKernel& kernel_;
};

}  // namespace xenoscope::sampler
