// A store in a file: slices come back as they were pushed, each once, and what is no store is
// refused.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sqlite3.h>
#include <unistd.h>
#include <zstd.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "store/bounded_text.h"
#include "store/sqlite/connection.h"
#include "store/store.h"
#include "store/tables.h"

namespace xenoscope::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Makes the packed sums (first argument) those of version 3, which end before the rows of traces:
// there are none of these, so that only their number goes.
void CutRowsOfTraces(sqlite3_context* context, int /*count*/, sqlite3_value** values) {
  std::string packed(static_cast<const char*>(sqlite3_value_blob(values[0])),
                     static_cast<size_t>(sqlite3_value_bytes(values[0])));
  std::string plain(ZSTD_getFrameContentSize(packed.data(), packed.size()), '\0');
  ZSTD_decompress(plain.data(), plain.size(), packed.data(), packed.size());
  plain.resize(plain.size() - sizeof(uint32_t));
  packed.resize(ZSTD_compressBound(plain.size()));
  packed.resize(ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), 1));
  sqlite3_result_blob(context, packed.data(), static_cast<int>(packed.size()), SQLITE_TRANSIENT);
}

class SqliteStoreTest : public ::testing::Test {
 protected:
  SqliteStoreTest()
      : path_(::testing::TempDir() + "store-" + std::to_string(getpid()) + "-" +
              ::testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove(path_);
  }
  ~SqliteStoreTest() override { std::filesystem::remove(path_); }

  std::unique_ptr<Store> Open(Access access = Access::kCreate) {
    auto store = OpenStore("sqlite:" + path_, access);
    EXPECT_TRUE(store.ok()) << store.status();
    return *std::move(store);
  }
  // Changes the file behind the store's back.
  void Sql(const std::string& sql) {
    sqlite3* database = nullptr;
    ASSERT_EQ(sqlite3_open(path_.c_str(), &database), SQLITE_OK);
    sqlite3_create_function(database, "version3", 1, SQLITE_UTF8, nullptr, &CutRowsOfTraces,
                            nullptr, nullptr);
    EXPECT_EQ(sqlite3_exec(database, sql.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
    sqlite3_close(database);
  }
  int64_t Number(const char* sql) {
    const auto connection = Connection::Open(path_, Access::kRead);
    EXPECT_TRUE(connection.ok());
    return connection->Number(sql).value_or(-1);
  }
  // A slice with one row in each table.
  Slice Make(const std::string& host, int64_t begin_ns) {
    Slice slice;
    slice.head = {.host = host,
                  .begin_ns = begin_ns,
                  .end_ns = begin_ns + 60,
                  .clock_error_ns = 5,
                  .clock_hz = 2'000'000'000,
                  .event = "cycles"};
    const VcpuNumber vcpu = dictionary_.vcpus.Intern({"web", 3});
    const ContextNumber exit =
        dictionary_.contexts.Intern({correlate::ContextKind::kExit, "VMEXIT_CPUID", true});
    const CodeNumber code = dictionary_.codes.Intern({Mode::kXen, "xen", "do_cpuid"});
    slice.sums.strata.push_back({vcpu, exit, 1e6, 2, {3, 5, 2}});
    slice.sums.vcpus.push_back({vcpu, {2, 3, 5}, 5, {{1, 1, 1}, {3, 5, 2}}, 2, 40});
    slice.sums.pairs.push_back({vcpu, exit, exit, 5});
    slice.sums.parts.push_back({vcpu, exit, code, {1.5, 1.25, 2}, 2});
    slice.sums.unions.push_back({vcpu, code, {1.25, 2}});
    slice.sums.crosses.push_back({kFunctionColumn, vcpu, kAllContexts, code, 0.25});
    slice.sums.counters.push_back({"samples", 3});
    slice.sums.trace.push_back({kWaitFigure, vcpu, "preempt", "", "db", 4, 500});
    return slice;
  }
  std::vector<std::string> Hosts(const Selection& selection) {
    std::vector<std::string> hosts;
    const absl::Status status =
        Open(Access::kRead)->Read(selection, [&](const Slice& slice, const Dictionary&) {
          hosts.push_back(slice.head.host);
          return absl::OkStatus();
        });
    EXPECT_TRUE(status.ok()) << status;
    return hosts;
  }
  // Returns whether the file has these bytes anywhere.
  bool Contains(const std::string& text) {
    std::ifstream file(path_, std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    return bytes.find(text) != std::string::npos;
  }
  absl::Status ReadAll() {
    const auto store = OpenStore("sqlite:" + path_, Access::kRead);
    if (!store.ok()) return store.status();
    return (*store)->Read({}, [](const Slice&, const Dictionary&) { return absl::OkStatus(); });
  }

  std::string path_;
  Dictionary dictionary_;
};

TEST_F(SqliteStoreTest, ReturnsWhatWasPushed) {
  const Slice pushed = Make("a", 100);
  ASSERT_TRUE(*Open()->Push(pushed, dictionary_));
  Slice read;
  Dictionary dictionary;
  ASSERT_TRUE(Open(Access::kRead)
                  ->Read({},
                         [&](const Slice& slice, const Dictionary& keys) {
                           read = slice;
                           dictionary = keys;
                           return absl::OkStatus();
                         })
                  .ok());
  EXPECT_EQ(read.head.host, "a");
  EXPECT_EQ(read.head.end_ns, 160);
  EXPECT_EQ(read.head.clock_error_ns, 5);
  EXPECT_EQ(read.head.clock_hz, 2'000'000'000);
  const PartSums& part = read.sums.parts.at(0);
  EXPECT_EQ(dictionary.codes[part.code], (CodeKey{Mode::kXen, "xen", "do_cpuid"}));
  EXPECT_EQ(dictionary.vcpus[part.vcpu], (VcpuKey{"web", 3}));
  EXPECT_EQ(dictionary.contexts[part.context].exit, "VMEXIT_CPUID");
  EXPECT_TRUE(ForEachTable([&]<typename Sums>() {
                const auto& rows = read.sums.*Table<Sums>::kRows;
                EXPECT_EQ(rows.size(), 1U) << Table<Sums>::kName;
                return absl::OkStatus();
              }).ok());
  EXPECT_EQ(part.sums.xx, 1.25);
  EXPECT_EQ(read.sums.vcpus.at(0).median_stays, 40);
  EXPECT_EQ(read.sums.crosses.at(0).context, kAllContexts);
}

TEST_F(SqliteStoreTest, RemovesSelectedSlicesAndWhatOnlyTheyUse) {
  ASSERT_TRUE(*Open()->Push(Make("a", 100), dictionary_));
  ASSERT_TRUE(*Open()->Push(Make("b", 300), dictionary_));
  EXPECT_EQ(*Open()->Remove({.until_ns = 200}), 1U);
  EXPECT_THAT(Hosts({}), ElementsAre("b"));
  EXPECT_TRUE(ReadAll().ok());
  EXPECT_EQ(*Open()->Remove({.hosts = {"a"}}), 0U);
  EXPECT_EQ(*Open()->Remove({.hosts = {"b"}}), 1U);
  EXPECT_THAT(Hosts({}), ElementsAre());
  EXPECT_FALSE(Contains("do_cpuid"));
}

TEST_F(SqliteStoreTest, ErasesNamesOfADomainAndKeepsItsSums) {
  const CodeNumber secret = dictionary_.codes.Intern({Mode::kUser, "/opt/secret", "tenant_main"});
  const CodeNumber secret_image = dictionary_.codes.Intern({Mode::kUser, "/opt/secret", ""});
  Slice slice = Make("a", 100);
  const VcpuNumber web = slice.sums.parts.at(0).vcpu;
  const ContextNumber context = slice.sums.parts.at(0).context;
  const VcpuNumber other = dictionary_.vcpus.Intern({"db", 0});
  const CodeNumber shared = dictionary_.codes.Intern({Mode::kUser, "libc.so", "memcpy"});
  slice.sums.parts.push_back({web, context, secret, {7, 7, 7}, 7});
  slice.sums.parts.push_back({web, context, shared, {5, 5, 5}, 5});
  slice.sums.parts.push_back({other, context, shared, {9, 9, 9}, 9});
  slice.sums.crosses.push_back({kImageColumn, web, context, secret_image, 3});
  slice.sums.counters.push_back({"unresolved.no symbols for web", 2});
  slice.sums.trace.push_back({kWaitFigure, other, "preempt", "", "web", 0, 70});
  slice.sums.trace.push_back({kFindingFigure, kAllVcpus, "waits", "", "web", 1, 70});
  ASSERT_TRUE(*Open()->Push(slice, dictionary_));
  ASSERT_TRUE(*Open()->Push(Make("b", 100), dictionary_));

  EXPECT_EQ(*Open()->EraseDomain({.hosts = {"a"}}, "web"), 1U);
  EXPECT_TRUE(absl::IsNotFound(Open()->EraseDomain({.hosts = {"a"}}, "web").status()));
  std::vector<std::string> parts;
  double cross = 0;
  double waited = 0;
  const auto visit = [&](const Slice& read, const Dictionary& keys) {
    for (const PartSums& part : read.sums.parts) {
      const CodeKey& code = keys.codes[part.code];
      std::string function = code.function;
      if (function.starts_with("(removed ")) function = "removed";
      std::string domain = keys.vcpus[part.vcpu].domain;
      if (domain.starts_with("(removed ")) domain = "removed";
      parts.push_back(fmt::format("{} {} {} {:.0f}", read.head.host, domain, function,
                                  std::floor(part.sums.x)));
    }
    for (const CrossSums& sums : read.sums.crosses) {
      if (sums.columns != kImageColumn) continue;
      EXPECT_TRUE(keys.codes[sums.code].image.starts_with("(removed "));
      EXPECT_EQ(keys.codes[sums.code].function, "");
      cross = sums.xx;
    }
    for (const Counter& counter : read.sums.counters) {
      EXPECT_THAT(counter.name, ::testing::Not(HasSubstr("web")));
    }
    for (const TraceSums& row : read.sums.trace) {
      EXPECT_NE(row.other, "web");
      waited += row.cycles;
    }
    return absl::OkStatus();
  };
  ASSERT_TRUE(Open(Access::kRead)->Read({}, visit).ok());
  EXPECT_THAT(parts, ::testing::UnorderedElementsAre("a removed do_cpuid 1", "a removed removed 7",
                                                     "a removed removed 5", "a db memcpy 9",
                                                     "b web do_cpuid 1"));
  EXPECT_EQ(cross, 3);
  EXPECT_EQ(waited, 500 + 70 + 70 + 500);
  EXPECT_EQ(*Open()->EraseDomain({}, "web"), 1U);
  for (const char* const name : {"web", "/opt/secret", "tenant_main"}) {
    EXPECT_FALSE(Contains(name)) << name << " is still in the file";
  }
  EXPECT_TRUE(Contains("memcpy"));
}

// Such files are read, and become version 4 when they are written.
TEST_F(SqliteStoreTest, TakesFilesOfTheVersionBefore) {
  Slice slice = Make("a", 100);
  slice.sums.trace.clear();
  ASSERT_TRUE(*Open()->Push(slice, dictionary_));
  Sql("UPDATE sums SET packed = version3(packed); DROP TABLE function; PRAGMA user_version = 3");
  EXPECT_THAT(Hosts({}), ElementsAre("a"));
  EXPECT_TRUE(Open(Access::kRead)->Functions("8f")->empty());
  EXPECT_EQ(Number("PRAGMA user_version"), 3);
  ASSERT_TRUE(*Open()->Push(Make("b", 100), dictionary_));
  EXPECT_EQ(Number("PRAGMA user_version"), 5);
  EXPECT_THAT(Hosts({}), ElementsAre("a", "b"));
  Sql("PRAGMA user_version = 4");  // whose tables are the same
  EXPECT_THAT(Hosts({}), ElementsAre("a", "b"));
  ASSERT_TRUE(*Open()->Push(Make("c", 100), dictionary_));
  EXPECT_EQ(Number("PRAGMA user_version"), 5);
  EXPECT_EQ(*Open()->EraseDomain({}, "web"), 3U);
}

TEST_F(SqliteStoreTest, KeepsTheFunctionsOfTheNewestPush) {
  const std::vector<ImageFunction> first = {{0x100, 0x120, "main"}, {0x120, 0x200, "serve"}};
  const std::vector<ImageFunction> second = {{0x100, 0x130, "main"}};
  ASSERT_TRUE(Open()->PutFunctions("8f", first).ok());
  ASSERT_TRUE(Open()->PutFunctions("90", second).ok());
  EXPECT_EQ(*Open(Access::kRead)->Functions("8f"), first);
  ASSERT_TRUE(Open()->PutFunctions("8f", second).ok());
  EXPECT_EQ(*Open(Access::kRead)->Functions("8f"), second);
  EXPECT_TRUE(Open(Access::kRead)->Functions("91")->empty());
  EXPECT_FALSE(Open()->PutFunctions("8f", {{2, 1, "a"}}).ok());
  EXPECT_EQ(*Open(Access::kRead)->Functions("8f"), second);
}

TEST_F(SqliteStoreTest, CountsASliceOnce) {
  EXPECT_TRUE(*Open()->Push(Make("a", 100), dictionary_));
  EXPECT_FALSE(*Open()->Push(Make("a", 100), dictionary_));
  EXPECT_THAT(Hosts({}), ElementsAre("a"));
}

TEST_F(SqliteStoreTest, SelectsHostsAndTimes) {
  const auto store = Open();
  for (const char* host : {"a", "b"}) {
    for (const int64_t begin : {100, 160, 220}) {
      ASSERT_TRUE(*store->Push(Make(host, begin), dictionary_));
    }
  }
  EXPECT_THAT(Hosts({.hosts = {"b"}}), ElementsAre("b", "b", "b"));
  EXPECT_THAT(Hosts({.since_ns = 160, .until_ns = 220}), ElementsAre("a", "b"));
  EXPECT_THAT(Hosts({.event = "instructions"}), ElementsAre());
}

// Two machines of one name would make one host of their samples.
TEST_F(SqliteStoreTest, RefusesSlicesThatOverlap) {
  const auto store = Open();
  ASSERT_TRUE(*store->Push(Make("a", 100), dictionary_));
  for (const int64_t begin : {60, 130}) {
    const auto pushed = store->Push(Make("a", begin), dictionary_);
    EXPECT_TRUE(absl::IsFailedPrecondition(pushed.status())) << begin;
    EXPECT_THAT(std::string(pushed.status().message()), HasSubstr("two hosts"));
  }
  EXPECT_TRUE(*store->Push(Make("a", 160), dictionary_));
  EXPECT_TRUE(*store->Push(Make("b", 130), dictionary_));
}

// Slices of an interval become one, with their sums; those of other intervals, hosts and periods
// stay apart.
TEST_F(SqliteStoreTest, JoinsSlicesOfAnInterval) {
  const auto store = Open();
  for (const char* host : {"a", "b"}) {
    for (const int64_t begin : {1000, 1060, 1200, 2000}) {
      ASSERT_TRUE(*store->Push(Make(host, begin), dictionary_));
    }
  }
  Slice other = Make("a", 1300);
  other.head.period = 7;
  ASSERT_TRUE(*store->Push(other, dictionary_));
  const Store::Joined joined = *store->Join({.hosts = {"a"}}, 1000);
  EXPECT_EQ(joined.from, 3U);
  EXPECT_EQ(joined.to, 1U);
  EXPECT_THAT(Hosts({}), ElementsAre("a", "a", "a", "b", "b", "b", "b"));
  ASSERT_TRUE(Open(Access::kRead)
                  ->Read({.hosts = {"a"}, .until_ns = 1100},
                         [&](const Slice& slice, const Dictionary& keys) {
                           EXPECT_EQ(slice.count, 3U);
                           EXPECT_EQ(slice.head.begin_ns, 1000);
                           EXPECT_EQ(slice.head.end_ns, 1260);
                           EXPECT_EQ(slice.gaps_ns, 80);
                           EXPECT_EQ(slice.sums.parts.size(), 1U);
                           EXPECT_EQ(slice.sums.parts.at(0).sums.x, 3 * 1.5);
                           EXPECT_EQ(slice.sums.strata.at(0).totals.clusters, 6U);
                           EXPECT_EQ(keys.vcpus[slice.sums.parts.at(0).vcpu].domain, "web");
                           EXPECT_EQ(slice.sums.trace.size(), 1U);
                           EXPECT_EQ(slice.sums.trace.at(0).cycles, 3 * 500);
                           EXPECT_EQ(slice.sums.trace.at(0).other, "db");
                           return absl::OkStatus();
                         })
                  .ok());
}

// Slices that come late go into the gaps of a joined one; those that are in it count once.
TEST_F(SqliteStoreTest, KnowsTheSlicesOfAJoinedOne) {
  const auto store = Open();
  for (const int64_t begin : {1000, 1060, 1200}) {
    ASSERT_TRUE(*store->Push(Make("a", begin), dictionary_));
  }
  EXPECT_EQ(store->Join({}, 1000)->from, 3U);
  for (const int64_t begin : {1000, 1060, 1200}) {
    EXPECT_FALSE(*store->Push(Make("a", begin), dictionary_)) << begin;
  }
  EXPECT_TRUE(absl::IsFailedPrecondition(store->Push(Make("a", 1100), dictionary_).status()));
  EXPECT_TRUE(*store->Push(Make("a", 1130), dictionary_));
  EXPECT_EQ(store->Join({}, 1000)->from, 2U);
  EXPECT_EQ(store->Join({}, 1000)->from, 0U);
  EXPECT_FALSE(*store->Push(Make("a", 1060), dictionary_));
  EXPECT_FALSE(*store->Push(Make("a", 1130), dictionary_));
  EXPECT_EQ(*store->Remove({}), 1U);
  EXPECT_TRUE(*store->Push(Make("a", 1060), dictionary_));
}

// Rows of one key add up: domains of one name are one domain.
TEST_F(SqliteStoreTest, AddsRowsOfOneKey) {
  Slice slice = Make("a", 100);
  slice.sums.parts.push_back(slice.sums.parts.at(0));
  ASSERT_TRUE(*Open()->Push(slice, dictionary_));
  double x = 0;
  ASSERT_TRUE(Open(Access::kRead)
                  ->Read({},
                         [&](const Slice& read, const Dictionary&) {
                           for (const PartSums& part : read.sums.parts) x += part.sums.x;
                           return absl::OkStatus();
                         })
                  .ok());
  EXPECT_EQ(x, 3);
}

// A slice that fails in the middle leaves nothing.
TEST_F(SqliteStoreTest, LeavesNothingOfAFailedPush) {
  ASSERT_TRUE(*Open()->Push(Make("a", 100), dictionary_));
  Sql("CREATE TRIGGER fails BEFORE INSERT ON sums BEGIN SELECT RAISE(ABORT, 'no'); END");
  EXPECT_FALSE(Open()->Push(Make("b", 100), dictionary_).ok());
  Sql("DROP TRIGGER fails");
  EXPECT_THAT(Hosts({}), ElementsAre("a"));
  EXPECT_TRUE(*Open()->Push(Make("b", 100), dictionary_));
}

TEST_F(SqliteStoreTest, RefusesWhatIsNoStore) {
  for (const Access access : {Access::kRead, Access::kWrite}) {
    EXPECT_TRUE(absl::IsNotFound(OpenStore("sqlite:" + path_, access).status()));
    EXPECT_FALSE(std::filesystem::exists(path_));
  }
  EXPECT_TRUE(absl::IsInvalidArgument(OpenStore("mysql:x", Access::kRead).status()));
  Sql("CREATE TABLE other(x)");
  EXPECT_TRUE(absl::IsInvalidArgument(OpenStore("sqlite:" + path_, Access::kCreate).status()));
}

TEST_F(SqliteStoreTest, RefusesOtherVersions) {
  Open();
  Sql("PRAGMA user_version = 99");
  const auto store = OpenStore("sqlite:" + path_, Access::kRead);
  EXPECT_TRUE(absl::IsFailedPrecondition(store.status()));
  EXPECT_THAT(std::string(store.status().message()), HasSubstr("version 99"));
}

// What somebody else wrote into the file is an error, not a crash.
TEST_F(SqliteStoreTest, RefusesDamagedRows) {
  for (const char* damage :
       {"UPDATE sums SET packed = x'00'", "UPDATE sums SET packed = ''", "DELETE FROM sums",
        "UPDATE sums SET packed = substr(packed, 1, length(packed) - 4)",
        "UPDATE context SET kind = 99", "UPDATE code SET mode = -1", "DELETE FROM vcpu",
        "DELETE FROM code", "UPDATE slice SET clock_hz = 0", "UPDATE slice SET end_ns = begin_ns",
        "UPDATE slice SET host = -7", "UPDATE slice SET count = 0", "UPDATE slice SET gaps_ns = -1",
        "UPDATE slice SET gaps_ns = 1000", "UPDATE vcpu SET domain = 99", "DELETE FROM name"}) {
    std::filesystem::remove(path_);
    ASSERT_TRUE(*Open()->Push(Make("a", 100), dictionary_));
    ASSERT_TRUE(ReadAll().ok());
    Sql(damage);
    const absl::Status status = ReadAll();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << damage << ": " << status;
  }
}

// What a back end reads is checked in one place, whatever it comes from.
TEST_F(SqliteStoreTest, RefusesRowsThatNoSliceHas) {
  const std::vector<std::function<void(Slice&)>> damages = {
      [](Slice& slice) { slice.sums.parts.at(0).vcpu = kAllVcpus; },
      [](Slice& slice) { slice.sums.parts.at(0).context = kAllContexts; },
      [](Slice& slice) { slice.sums.parts.at(0).sums.x = INFINITY; },
      [](Slice& slice) { slice.sums.strata.at(0).vcpu = kAllVcpus; },
      [](Slice& slice) { slice.sums.crosses.at(0).columns = kAllCodeColumns; },
      [](Slice& slice) { slice.sums.counters.at(0).value = -1; },
      [](Slice& slice) { slice.sums.trace.at(0).figure = kLastTraceFigure + 1; },
      [](Slice& slice) { slice.sums.trace.at(0).figure = kFindingFigure; },
      [](Slice& slice) { slice.sums.trace.at(0).vcpu = kAllVcpus; },
      [](Slice& slice) { slice.sums.trace.at(0).cycles = -1; },
      [](Slice& slice) { slice.head.period = NAN; },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    Slice slice = Make("a", 100);
    EXPECT_TRUE(CheckSlice(slice, dictionary_).ok());
    damages[i](slice);
    EXPECT_TRUE(absl::IsInvalidArgument(CheckSlice(slice, dictionary_))) << i;
    EXPECT_TRUE(absl::IsInvalidArgument(Open()->Push(slice, dictionary_).status())) << i;
  }
}

// As a row of a table, a part would need some 50 bytes.
TEST_F(SqliteStoreTest, PacksRows) {
  Slice slice = Make("a", 100);
  const PartSums first = slice.sums.parts.at(0);
  constexpr int kRows = 20'000;
  for (int i = 0; i < kRows; ++i) {
    PartSums& part = slice.sums.parts.emplace_back(first);
    part.code = dictionary_.codes.Intern({Mode::kUser, "a", fmt::format("f{}", i / 40)});
    part.context = dictionary_.contexts.Intern(
        {correlate::ContextKind::kExit, fmt::format("exit {}", i % 40), true});
    part.sums = {1.0 / (1 + i % 7), 1.0 / (1 + i % 49), i % 9 * 0.3};
  }
  ASSERT_TRUE(*Open()->Push(slice, dictionary_));
  EXPECT_LT(std::filesystem::file_size(path_), 10 * kRows + 100'000);
  double x = 0;
  ASSERT_TRUE(Open(Access::kRead)
                  ->Read({},
                         [&](const Slice& read, const Dictionary&) {
                           for (const PartSums& part : read.sums.parts) x += part.sums.x;
                           return absl::OkStatus();
                         })
                  .ok());
  double expected = 0;
  for (const PartSums& part : slice.sums.parts) expected += part.sums.x;
  EXPECT_NEAR(x, expected, 1e-6 * expected);
}

TEST(BoundedName, IsPrintableAndBounded) {
  EXPECT_EQ(BoundedName("do_sched_op"), "do_sched_op");
  EXPECT_EQ(BoundedName("a\x1b[31m\n"), "a\\x1b[31m\\x0a");
  const std::string a = BoundedName(std::string(5000, 'x') + "a");
  const std::string b = BoundedName(std::string(5000, 'x') + "b");
  EXPECT_EQ(a.size(), kMaxName);
  EXPECT_NE(a, b);
  EXPECT_EQ(BoundedName(std::string(kMaxName, '\n')).size(), kMaxName);
}

}  // namespace
}  // namespace xenoscope::store
