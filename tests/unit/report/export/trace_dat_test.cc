#include "report/export/trace_dat.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/mapped_file.h"
#include "guests/ftrace/page_reader.h"
#include "guests/threads/follow_threads.h"
#include "report/export/trace_dat_kernel.h"
#include "report/export/trace_dat_xen.h"
#include "tests/unit/guests/recorded_kernel.h"
#include "tests/unit/trace/exit_reasons.h"
#include "tests/unit/trace/trace_builder.h"
#include "trace/trace_file.h"

namespace xenoscope::report {
namespace {

using guests::PageBuilder;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

// Reads the file as trace-cmd does.
class DatReader {
 public:
  explicit DatReader(const std::string& path) {
    auto file = MappedFile::Open(path);
    EXPECT_TRUE(file.ok()) << file.status();
    file_ = *std::move(file);
    EXPECT_EQ(Text(10), "\x17\x08\x44tracing");
    EXPECT_EQ(Name(), "6");
    EXPECT_EQ(Take<uint8_t>(), 0);  // little-endian
    EXPECT_EQ(Take<uint8_t>(), 8);
    EXPECT_EQ(Take<uint32_t>(), TraceDat::kPageSize);
    EXPECT_EQ(Name(), "header_page");
    Text(Take<uint64_t>());
    EXPECT_EQ(Name(), "header_event");
    Text(Take<uint64_t>());
    EXPECT_EQ(Take<uint32_t>(), 0U);
    for (auto systems = Take<uint32_t>(); systems > 0; --systems) {
      const std::string system = Name();
      for (auto events = Take<uint32_t>(); events > 0; --events) {
        formats.push_back(system + " " + Text(Take<uint64_t>()));
      }
    }
    kallsyms = Text(Take<uint32_t>());
    EXPECT_EQ(Take<uint32_t>(), 0U);
    threads = Text(Take<uint64_t>());
    cpus_ = Take<uint32_t>();
    EXPECT_EQ(Name(), "options  ");
    for (auto option = Take<uint16_t>(); option != 0; option = Take<uint16_t>()) {
      options.push_back(fmt::format("{}: {}", option, Take<uint32_t>()));
      at_ += std::stoul(options.back().substr(options.back().find(' ')));
    }
    EXPECT_EQ(Name(), "flyrecord");
  }

  // "12 lost sched_switch's data in words" of the events of the next CPU.
  std::vector<std::string> NextCpu() {
    std::vector<std::string> events;
    const auto at = Take<uint64_t>();
    const auto size = Take<uint64_t>();
    EXPECT_EQ(at % TraceDat::kPageSize + size % TraceDat::kPageSize, 0U);
    for (uint64_t page = 0; page < size; page += TraceDat::kPageSize) {
      guests::PageReader reader(file_.bytes().subspan(at + page, TraceDat::kPageSize), {});
      bool lost = reader.lost_before();
      guests::RawEvent event;
      while (reader.Next(event)) {
        events.push_back(fmt::format("{} {}{}", event.tsc,
                                     std::exchange(lost, false) ? "lost " : "",
                                     LoadUnchecked<uint16_t>(event.data.data())));
        if (event.data.size() > 12) last = event.data;
      }
      EXPECT_EQ(reader.damaged_bytes(), 0U);
    }
    return events;
  }
  [[nodiscard]] uint32_t cpus() const { return cpus_; }

  std::vector<std::string> formats;
  std::string kallsyms;
  std::string threads;
  std::vector<std::string> options;  // "13: 24", with its bytes
  Bytes last;                        // the last event's

 private:
  template <typename T>
  T Take() {
    const T value = LoadUnchecked<T>(file_.bytes().data() + at_);
    at_ += sizeof(T);
    return value;
  }
  std::string Text(size_t size) {
    at_ += size;
    return std::string(AsText(file_.bytes().subspan(at_ - size, size)));
  }
  std::string Name() {
    const std::string_view rest = AsText(file_.bytes().subspan(at_));
    std::string name(rest.substr(0, rest.find('\0')));
    at_ += name.size() + 1;
    return name;
  }

  MappedFile file_;
  size_t at_ = 0;
  uint32_t cpus_ = 0;
};

class TraceDatTest : public testing::Test {
 protected:
  ~TraceDatTest() override { unlink(path_.c_str()); }
  const std::string path_ = testing::TempDir() + "/trace.dat." + std::to_string(getpid());
  const TraceDatOptions options_{.clock = {.hz = 1'000'000'000}, .zero = Tsc{1000}};
};

TEST_F(TraceDatTest, EventsOfCpusComeInAnyOrder) {
  auto file = TraceDat::Create(/*cpus=*/3);
  ASSERT_TRUE(file.ok()) << file.status();
  const auto add = [&file](size_t cpu, uint64_t ns, uint16_t id, size_t bytes) {
    std::vector<std::byte> event(bytes);
    std::memcpy(event.data(), &id, sizeof(id));
    EXPECT_TRUE(file->Add(cpu, ns, event).ok());
  };
  add(1, 5, 1, 8);
  add(0, 100, 2, 8);
  add(0, 100'000'000'000, 3, 8);  // longer than the 27 bits of a time
  add(0, 99, 4, 8);               // time does not go back
  add(1, 6, 5, 113);              // longer than 28 words
  add(1, 7, 6, 4072);             // fills a page alone
  add(1, 8, 7, 4080);             // fits in none
  EXPECT_TRUE(file->Lose(1).ok());
  add(1, 9, 8, 8);
  EXPECT_EQ(file->left_out(), 1U);
  ASSERT_TRUE(file->Write(path_, {.id = 7,
                                  .formats = {{"sched", "name: a"}, {"irq", "name: b"}},
                                  .kallsyms = "ffffffff81000000 T _text\n",
                                  .threads = {{7, "web"}, {8, "my db"}},
                                  .guests = {{"web1", 9, {30001, 30002}}}})
                  .ok());
  DatReader read(path_);
  EXPECT_THAT(read.formats, ElementsAre("irq name: b", "sched name: a"));
  EXPECT_EQ(read.kallsyms, "ffffffff81000000 T _text\n");
  EXPECT_EQ(read.threads, "7 web\n8 my db\n");
  EXPECT_THAT(read.options, ElementsAre("11: 8", "13: 33"));
  ASSERT_EQ(read.cpus(), 3U);
  EXPECT_THAT(read.NextCpu(), ElementsAre("100 2", "100000000000 3", "100000000000 4"));
  EXPECT_THAT(read.NextCpu(), ElementsAre("5 1", "6 5", "7 6", "9 lost 8"));
  EXPECT_THAT(read.NextCpu(), ElementsAre());
}

TEST_F(TraceDatTest, AKernelsEventsHaveTheHostsTime) {
  guests::RecordedKernel kernel;
  kernel.Page(0, PageBuilder(2'001'100).Switch(0, 0, 0, 7, "web").Switch(50, 7, 1, 0, "").Page());
  kernel.Page(1, PageBuilder(2'001'200).Switch(0, 0, 0, 8, "my\ndb").Page(/*is_lossy=*/true));
  const guests::KernelTrace& trace = kernel.Open();
  const guests::EventClock clock = guests::EventClock::Fixed(2'000'000);
  guests::ThreadStates threads(trace, clock);
  ASSERT_TRUE(guests::FollowThreads({&threads, 1}, nullptr).ok());
  const auto left_out = WriteKernelTraceDat(path_, trace, clock, threads, "", options_);
  ASSERT_TRUE(left_out.ok()) << left_out.status();
  EXPECT_EQ(*left_out, 0U);
  DatReader read(path_);
  EXPECT_THAT(read.formats, Contains(HasSubstr("name: sched_switch")));
  EXPECT_EQ(read.threads, "7 web\n8 my db\n");
  EXPECT_THAT(read.NextCpu(), ElementsAre(fmt::format("100 {}", guests::kSwitchId),
                                          fmt::format("150 {}", guests::kSwitchId)));
  EXPECT_THAT(read.NextCpu(), ElementsAre(fmt::format("200 lost {}", guests::kSwitchId)));
}

// d1v0, an HVM guest, and d2v0, which has no exits, take turns on a pCPU.
TEST_F(TraceDatTest, XenSchedulesVcpusAndEntersGuests) {
  using namespace trace;  // NOLINT(google-build-using-namespace): the numbers of records
  TraceBuilder bytes;
  bytes.Window(
      0,
      {Rec(kRunnableToRunning, 1000, {kD1V0}), Rec(kVmentry, 1200, {}),
       Rec(kVmexit64, 2000, {kVmexitCpuid, 0x1234, 0}), Rec(kVmentry, 2600, {}),
       Rec(kVmexit64, 3000, {kVmexitHlt, 0x1000, 0}), Rec(kRunningToBlocked, 4000, {kD1V0}),
       Rec(kRunnableToRunning, 4000, {Vcpu(2, 0)}), Rec(kRunningToRunnable, 5000, {Vcpu(2, 0)})});
  const auto xen = TraceFile::FromBytes(bytes.bytes(), "test");
  ASSERT_TRUE(xen.ok()) << xen.status();
  const auto name_of = [](DomainId domain) { return domain.value == 1 ? "web" : ""; };
  ASSERT_TRUE(
      WriteXenTraceDat(path_, *xen, Vendor::kSvm, name_of, {{DomainId{1}, 1}}, options_).ok());
  DatReader read(path_);
  EXPECT_EQ(read.threads, "10001 web/v0\n20001 d2/v0\n");
  EXPECT_THAT(read.options, ElementsAre("11: 8", "13: 24"));
  EXPECT_THAT(read.formats.at(1), HasSubstr("\"VMEXIT_CPUID\""));
  // sched_switch, kvm_entry and kvm_exit are 1, 2 and 3.
  EXPECT_THAT(read.NextCpu(), ElementsAre("0 1", "200 2", "1000 3", "1600 2", "2000 3", "3000 1",
                                          "3000 2", "4000 3"));
  EXPECT_EQ(LoadUnchecked<uint32_t>(read.last.data() + 24), 0xffffU);  // a PV guest has no reason
}

}  // namespace
}  // namespace xenoscope::report
