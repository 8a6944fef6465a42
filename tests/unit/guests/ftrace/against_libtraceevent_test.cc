// Compares what is read of trace pages with what libtraceevent, which trace-cmd is built on, reads.
#include <event-parse.h>
extern "C" {
#include <kbuffer.h>  // does not say so itself
}
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"
#include "base/mapped_file.h"
#include "guests/ftrace/formats.h"
#include "guests/ftrace/kernel_event.h"
#include "guests/ftrace/kernel_trace.h"
#include "guests/ftrace/page_reader.h"
#include "page_builder.h"
#include "recording/plain_file.h"

namespace xenoscope::guests {
namespace {

struct FreeBuffer {
  void operator()(kbuffer* buffer) const { kbuffer_free(buffer); }
};
struct FreeHandle {
  void operator()(tep_handle* handle) const { tep_free(handle); }
};
using Handle = std::unique_ptr<tep_handle, FreeHandle>;

using Place = std::tuple<uint64_t, size_t>;  // time, and where in the page its data begin

std::vector<Place> Ours(Bytes page) {
  std::vector<Place> found;
  PageReader reader(page, {});
  for (RawEvent event; reader.Next(event);) {
    found.emplace_back(event.tsc, static_cast<size_t>(event.data.data() - page.data()));
  }
  EXPECT_EQ(reader.damaged_bytes(), 0U);
  return found;
}

std::vector<Place> Theirs(std::vector<std::byte> page) {
  std::vector<Place> found;
  const std::unique_ptr<kbuffer, FreeBuffer> buffer(
      kbuffer_alloc(KBUFFER_LSIZE_8, KBUFFER_ENDIAN_LITTLE));
  EXPECT_EQ(kbuffer_load_subbuffer(buffer.get(), page.data()), 0);
  unsigned long long tsc = 0;
  for (void* data = kbuffer_read_event(buffer.get(), &tsc); data != nullptr;
       data = kbuffer_next_event(buffer.get(), &tsc)) {
    found.emplace_back(tsc, static_cast<size_t>(static_cast<std::byte*>(data) - page.data()));
  }
  return found;
}

// A file of the recorded kernel: Linux 6.1 of Debian 12.
class Recorded : public testing::Test {
 protected:
  static std::string Content(const std::string& name) {
    const auto plain =
        recording::PlainFile::Open(std::string(XENOSCOPE_TEST_DATA "/ftrace/") + name);
    EXPECT_TRUE(plain.ok()) << plain.status();
    const auto file = MappedFile::Open(plain->path());
    EXPECT_TRUE(file.ok()) << file.status();
    return std::string(AsText(file->bytes()));
  }
  static std::vector<std::byte> Page(const std::string& pages, size_t number) {
    const Bytes page = AsBytes(pages).subspan(number * PageBuilder::kSize, PageBuilder::kSize);
    return {page.begin(), page.end()};
  }
};

TEST_F(Recorded, PagesHaveTheSameEventsAtTheSameTimes) {
  // The kernel's own count of what it gave (per_cpu/cpuN/stats, "read events").
  const std::map<std::string, size_t> given{{"cpu0.pages", 219}, {"cpu1.pages", 599}};
  for (const auto& [name, count] : given) {
    const std::string pages = Content(name);
    ASSERT_EQ(pages.size() % PageBuilder::kSize, 0U);
    size_t events = 0;
    for (size_t i = 0; i < pages.size() / PageBuilder::kSize; ++i) {
      const std::vector<std::byte> page = Page(pages, i);
      const std::vector<Place> ours = Ours(page);
      EXPECT_EQ(ours, Theirs(page)) << name << " page " << i;
      events += ours.size();
    }
    EXPECT_EQ(events, count) << name;
  }
}

// Each event's fields, by libtraceevent's parser of the same formats.
class Fields {
 public:
  explicit Fields(std::string formats) : formats_(std::move(formats)), handle_(tep_alloc()) {
    for (size_t at = formats_.find("# "); at != std::string::npos;) {
      const size_t line = formats_.find('\n', at);
      const size_t next = formats_.find("\n# ", line);
      const std::string title = formats_.substr(at + 2, line - at - 2);
      const std::string part =
          formats_.substr(line + 1, next == std::string::npos ? next : next - line);
      if (const size_t slash = title.find('/'); slash != std::string::npos) {
        EXPECT_EQ(tep_parse_event(handle_.get(), part.c_str(), part.size(),
                                  title.substr(0, slash).c_str()),
                  0)
            << title;
      }
      at = next == std::string::npos ? next : next + 1;
    }
  }

  // Returns the record of the page's data from `at` on.
  static tep_record Record(std::vector<std::byte>& page, Bytes data, size_t at) {
    tep_record record{};
    record.data = page.data() + at;
    record.size = static_cast<int>(data.size());
    return record;
  }
  uint64_t Number(tep_record& record, const char* name) {
    unsigned long long value = 0;
    EXPECT_EQ(tep_get_any_field_val(nullptr, Event(record), name, &record, &value, 0), 0) << name;
    return value;
  }
  std::string Text(tep_record& record, const char* name) {
    int length = 0;
    const auto* const text = static_cast<const char*>(
        tep_get_field_raw(nullptr, Event(record), name, &record, &length, 0));
    EXPECT_NE(text, nullptr) << name;
    return text == nullptr ? "" : std::string(text, strnlen(text, static_cast<size_t>(length)));
  }
  std::string NameOf(tep_record& record) { return Event(record)->name; }

 private:
  tep_event* Event(tep_record& record) { return tep_find_event_by_record(handle_.get(), &record); }
  std::string formats_;
  Handle handle_;
};

TEST_F(Recorded, EventsHaveTheSameFields) {
  const std::string text = Content("formats");
  const auto formats = ParseFormats(text);
  ASSERT_TRUE(formats.ok()) << formats.status();
  const auto decoder = EventDecoder::Create(*formats);
  ASSERT_TRUE(decoder.ok()) << decoder.status();
  Fields fields(text);
  std::vector<size_t> seen(kKernelEventKinds);
  for (const char* const name : {"cpu0.pages", "cpu1.pages"}) {
    const std::string pages = Content(name);
    for (size_t i = 0; i < pages.size() / PageBuilder::kSize; ++i) {
      std::vector<std::byte> page = Page(pages, i);
      PageReader reader(page, formats->page);
      RawEvent raw;
      KernelEvent event;
      while (reader.Next(raw)) {
        bool malformed = false;
        ASSERT_TRUE(decoder->Decode(raw, event, malformed));
        ++seen[static_cast<size_t>(event.kind)];
        tep_record record =
            Fields::Record(page, raw.data, static_cast<size_t>(raw.data.data() - page.data()));
        EXPECT_EQ(event.current, fields.Number(record, "common_pid"));
        switch (event.kind) {
          case KernelEventKind::kSwitch:
            EXPECT_EQ(fields.NameOf(record), "sched_switch");
            EXPECT_EQ(event.thread, fields.Number(record, "prev_pid"));
            EXPECT_EQ(event.next, fields.Number(record, "next_pid"));
            EXPECT_EQ(event.state, fields.Number(record, "prev_state"));
            EXPECT_EQ(event.name, fields.Text(record, "next_comm"));
            break;
          case KernelEventKind::kWaking:
            EXPECT_EQ(fields.NameOf(record), "sched_waking");
            EXPECT_EQ(event.thread, fields.Number(record, "pid"));
            EXPECT_EQ(event.number, fields.Number(record, "target_cpu"));
            break;
          case KernelEventKind::kFork:
            EXPECT_EQ(event.thread, fields.Number(record, "child_pid"));
            EXPECT_EQ(event.number, fields.Number(record, "parent_pid"));
            break;
          case KernelEventKind::kExec:
            EXPECT_EQ(event.name, fields.Text(record, "filename"));
            break;
          case KernelEventKind::kSoftirqEntry:
            EXPECT_EQ(event.number, fields.Number(record, "vec"));
            break;
          case KernelEventKind::kCgroupAttach:
            EXPECT_EQ(event.thread, fields.Number(record, "pid"));
            EXPECT_EQ(event.path, fields.Text(record, "dst_path"));
            break;
          default:
            break;
        }
      }
    }
  }
  using Kind = KernelEventKind;
  for (const Kind kind : {Kind::kSwitch, Kind::kWaking, Kind::kFork, Kind::kExec, Kind::kExit,
                          Kind::kSoftirqEntry, Kind::kCgroupAttach}) {
    EXPECT_GT(seen[static_cast<size_t>(kind)], 0U) << static_cast<int>(kind);
  }
}

// Functions of a boot that Debian 12's Linux 6.1 traced.
TEST_F(Recorded, CallsOfFunctionsHaveTheSameFields) {
  const auto plain = recording::PlainFile::Open(
      std::string(XENOSCOPE_TEST_DATA "/functions.xeno/guests/2/boot-trace"));
  ASSERT_TRUE(plain.ok()) << plain.status();
  const auto file = MappedFile::Open(plain->path());
  ASSERT_TRUE(file.ok()) << file.status();
  const auto kernel = KernelTrace::Open(file->bytes(), DomainId{2}, kDom0);
  ASSERT_TRUE(kernel.ok() && *kernel) << kernel.status();
  std::string formats;
  for (const EventFormat& format : (*kernel)->formats().events) {
    formats += "# " + format.system + "/" + format.name + "\n" + format.text + "\n";
  }
  Fields fields(formats);
  size_t entries = 0;
  size_t returns = 0;
  CpuCursor cursor(**kernel, 0);
  while (cursor.Next()) {
    const KernelEvent& event = cursor.event();
    if (!IsOfFunction(event.kind)) continue;
    std::vector<std::byte> data(cursor.data().begin(), cursor.data().end());
    tep_record record = Fields::Record(data, cursor.data(), 0);
    const bool enters = event.kind == KernelEventKind::kFunctionEntry;
    EXPECT_EQ(fields.NameOf(record), enters ? "funcgraph_entry" : "funcgraph_exit");
    EXPECT_EQ(event.current, fields.Number(record, "common_pid"));
    EXPECT_EQ(event.number, fields.Number(record, "func"));
    EXPECT_EQ(event.state, fields.Number(record, "depth"));
    ++(enters ? entries : returns);
  }
  EXPECT_EQ(entries + returns, 6590U);
  EXPECT_GT(entries, 3000U);
  EXPECT_GT(returns, 3000U);
}

TEST(RandomPages, HaveTheSameEventsAtTheSameTimes) {
  std::mt19937_64 random(23);
  const auto below = [&random](uint64_t limit) { return random() % limit; };
  for (int round = 0; round < 2000; ++round) {
    PageBuilder page(below(uint64_t{1} << 50));
    uint64_t stamp = uint64_t{1} << 51;
    while (page.room() > 400) {
      const auto delta = static_cast<uint32_t>(below(1U << 27));
      const std::vector<std::byte> data((1 + below(28)) * 4);
      switch (below(6)) {
        case 0:
          page.LongEvent(delta, std::vector<std::byte>(112 + below(40) * 4));
          break;
        case 1:
          page.TimeExtend(below(uint64_t{1} << 45)).Event(delta, data);
          break;
        case 2:
          page.TimeStamp(stamp += below(uint64_t{1} << 40) + (uint64_t{1} << 46))
              .Event(delta, data);
          break;
        case 3:
          page.Discarded(delta + 2, static_cast<uint32_t>(below(20))).Event(delta, data);
          break;
        default:
          page.Event(delta, data);
      }
      if (below(60) == 0) break;
    }
    const std::vector<std::byte> bytes = page.Page();
    ASSERT_EQ(Ours(bytes), Theirs(bytes)) << "round " << round;
  }
}

}  // namespace
}  // namespace xenoscope::guests
