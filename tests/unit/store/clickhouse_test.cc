// A store in ClickHouse, without a server: its URLs, and answers, which may be anyone's.
// tests/system/clickhouse.test asks servers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "store/clickhouse/conditions.h"
#include "store/clickhouse/read_plan.h"
#include "store/clickhouse/row_binary.h"
#include "store/clickhouse/server_url.h"
#include "store/clickhouse/stored_slices.h"
#include "store/clickhouse/sum_table.h"
#include "store/store.h"

namespace xenoscope::store {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ServerUrlTest, HasParts) {
  struct Case {
    const char* url;
    const char* user;
    const char* host;
    uint16_t port;
    const char* database;
    bool secure;
    const char* netrc;
  };
  for (const Case& c : {
           Case{"clickhouse://db1/fleet", "", "db1", 8123, "fleet", false, ""},
           Case{"clickhouse://db1/fleet?secure=true", "", "db1", 8443, "fleet", true, ""},
           Case{"clickhouse://x@db1.example:9/f_1", "x", "db1.example", 9, "f_1", false, ""},
           Case{"clickhouse://[::1]:9/f?netrc=/etc/n", "", "[::1]", 9, "f", false, "/etc/n"},
           Case{"clickhouse://[::1]/f", "", "[::1]", 8123, "f", false, ""},
       }) {
    const auto url = ParseServerUrl(c.url);
    ASSERT_TRUE(url.ok()) << c.url << ": " << url.status();
    EXPECT_EQ(url->user, c.user) << c.url;
    EXPECT_EQ(url->host, c.host) << c.url;
    EXPECT_EQ(url->port, c.port) << c.url;
    EXPECT_EQ(url->database, c.database) << c.url;
    EXPECT_EQ(url->secure, c.secure) << c.url;
    EXPECT_EQ(url->netrc, c.netrc) << c.url;
  }
}

TEST(ServerUrlTest, RefusesWithWhatToWrite) {
  for (const auto& [url, words] : std::vector<std::pair<const char*, const char*>>{
           {"clickhouse://", "'' is not a host"},
           {"clickhouse://db1", "'' is not a database"},
           {"clickhouse://db1/a b", "'a b' is not a database"},
           {"clickhouse://db1/a'", "is not a database"},
           {"clickhouse://db1:0/f", "'0' is not a port"},
           {"clickhouse://db1:65536/f", "'65536' is not a port"},
           {"clickhouse://db1:/f", "'' is not a port"},
           {"clickhouse://db1/f?cluster=x", "'cluster=x'"},
           {"clickhouse://db1/f?secure", "'secure='"},
           {"clickhouse://d b/f", "is not a host"},
           {"clickhouse://x:y@db1/f", "netrc"},
       }) {
    const auto parsed = ParseServerUrl(url);
    ASSERT_FALSE(parsed.ok()) << url;
    EXPECT_THAT(std::string(parsed.status().message()), HasSubstr(words)) << url;
  }
}

TEST(RowBinaryTest, ReadsWhatWasWritten) {
  RowBinaryWriter out;
  out.Put(int8_t{-3});
  out.Put(std::string_view("name"));
  out.Put(std::string(1000, 'x'));
  out.Put(2.5);
  RowBinaryReader in(AsBytes(out.bytes()));
  EXPECT_EQ(in.Get<int8_t>(), -3);
  EXPECT_EQ(in.Text(), "name");
  EXPECT_EQ(in.Text(), std::string(1000, 'x'));
  EXPECT_EQ(in.Get<double>(), 2.5);
  EXPECT_TRUE(in.ok() && in.AtEnd());
}

TEST(RowBinaryTest, EndsAtTextThatIsNotGood) {
  for (const std::string& bytes : {
           std::string("\x05"
                       "abc"),                                   // too short
           std::string("\x81\x08") + std::string(2000, 'x'),     // 1,025 bytes
           std::string("\x80\x80\x80\x80\x80\x80\x80\x80\x80"),  // a length without end
           std::string("\x80"),
           std::string(),
       }) {
    RowBinaryReader in(AsBytes(bytes));
    EXPECT_EQ(in.Text(), "");
    EXPECT_FALSE(in.ok());
    EXPECT_EQ(in.Get<uint64_t>(), 0);
    EXPECT_TRUE(in.AtEnd());
  }
}

TEST(RowBinaryTest, ReadsTextOfAnyLengthAsBytes) {
  RowBinaryWriter out;
  out.Put(std::string(3'000'000, 'x'));
  out.Put(uint8_t{7});
  RowBinaryReader in(AsBytes(out.bytes()));
  EXPECT_EQ(in.Blob().size(), 3'000'000);
  EXPECT_EQ(in.Get<uint8_t>(), 7);
  EXPECT_TRUE(in.ok() && in.AtEnd());
}

// The answer to a question for slices.
class StoredSlicesTest : public ::testing::Test {
 protected:
  void Add(const std::string& host, int64_t begin_ns, uint64_t push, uint64_t replaced = 0) {
    out_.Put(replaced);
    out_.Put(std::string_view("cycles"));
    out_.Put(host);
    out_.Put(begin_ns);
    out_.Put(begin_ns + 60);
    out_.Put(uint64_t{5});
    out_.Put(uint64_t{2'000'000'000});
    out_.Put(uint8_t{1});
    out_.Put(uint8_t{1});
    out_.Put(1.0);
    out_.Put(push);
    out_.Put(uint64_t{1});
    out_.Put(int64_t{0});
    out_.Put(std::string_view("names"));
    out_.Put("packed" + std::to_string(push));
  }
  // "host begin push", and "again" for what does not count.
  static std::vector<std::string> Texts(const std::optional<StoredSlices>& slices) {
    std::vector<std::string> texts;
    for (const StoredSlice& each : slices->all()) {
      EXPECT_EQ(AsText(each.packed), "packed" + std::to_string(each.push));
      texts.push_back(fmt::format("{} {} {}{}", each.head.host, each.head.begin_ns, each.push,
                                  each.again ? " again" : ""));
    }
    return texts;
  }

  RowBinaryWriter out_;
};

TEST_F(StoredSlicesTest, AreHostByHostInTheOrderOfTime) {
  Add("b", 60, 1);
  Add("a", 120, 2);
  Add("a", 60, 3);
  EXPECT_THAT(Texts(StoredSlices::Parse(out_.bytes())), ElementsAre("a 60 3", "a 120 2", "b 60 1"));
}

TEST_F(StoredSlicesTest, LeavesOutWhatOthersStandFor) {
  Add("a", 60, 1);
  Add("a", 120, 2);
  Add("a", 60, 9);
  Add("a", 60, 9, /*replaced=*/1);
  Add("a", 60, 9, /*replaced=*/2);
  EXPECT_THAT(Texts(StoredSlices::Parse(out_.bytes())), ElementsAre("a 60 9"));
}

TEST_F(StoredSlicesTest, SaysWhichWerePushedTwice) {
  Add("a", 60, 5);
  Add("a", 60, 3);
  Add("b", 60, 4);
  EXPECT_THAT(Texts(StoredSlices::Parse(out_.bytes())),
              ElementsAre("a 60 3", "a 60 5 again", "b 60 4"));
}

TEST_F(StoredSlicesTest, RefusesWhatIsNotAnAnswer) {
  Add("a", 60, 1);
  const std::string& good = out_.bytes();
  for (size_t length = 1; length < good.size(); ++length) {
    EXPECT_FALSE(StoredSlices::Parse(good.substr(0, length)).has_value()) << length;
  }
  EXPECT_FALSE(StoredSlices::Parse("Code: 241. Memory limit exceeded").has_value());
}

// "first-last since until".
std::vector<std::string> PartTexts(const std::vector<StoredSize>& sizes, PartBytes bytes) {
  std::vector<std::string> texts;
  for (const Range& part : PlanReads({.since_ns = 150, .until_ns = 450}, sizes, 100, bytes)) {
    texts.push_back(fmt::format("{}-{} {} {}", part.first_host, part.last_host,
                                part.selection.since_ns, part.selection.until_ns));
  }
  return texts;
}

TEST(ReadPlanTest, HasPartsOfSomeHostsOrOfSomeTime) {
  constexpr PartBytes kBytes{30, 30};
  EXPECT_THAT(PartTexts({}, kBytes), ElementsAre());
  EXPECT_THAT(PartTexts({{"a", 100, 0}}, kBytes), ElementsAre("a-a 150 450"));
  EXPECT_THAT(PartTexts({{"a", 100, 10}, {"a", 200, 10}, {"b", 100, 10}, {"c", 100, 10}}, kBytes),
              ElementsAre("a-b 150 450", "c-c 150 450"));
  EXPECT_THAT(
      PartTexts({{"a", 100, 10},
                 {"b", 100, 10},
                 {"b", 200, 30},
                 {"b", 300, 10},
                 {"b", 400, 10},
                 {"c", 400, 10}},
                kBytes),
      ElementsAre("a-a 150 450", "b-b 150 200", "b-b 200 300", "b-b 300 450", "c-c 150 450"));
}

TEST(ReadPlanTest, BeginsWithSmallParts) {
  std::vector<StoredSize> sizes;
  for (char host = 'a'; host <= 'r'; ++host) sizes.push_back({std::string(1, host), 100, 10});
  EXPECT_THAT(PartTexts(sizes, {20, 70}),
              ElementsAre("a-b 150 450", "c-f 150 450", "g-m 150 450", "n-r 150 450"));
  EXPECT_THAT(PartTexts({{"a", 100, 10}, {"a", 200, 10}, {"a", 300, 10}, {"a", 400, 10}}, {10, 20}),
              ElementsAre("a-a 150 200", "a-a 200 400", "a-a 400 450"));
}

TEST(ConditionsTest, ChooseByTheOrderKey) {
  const std::string where =
      Where({{.hosts = {"it's"}, .since_ns = -5, .until_ns = 9, .event = "e"}, "a\\", "z"});
  EXPECT_EQ(where,
            "begin_ns >= 0 AND begin_ns < 9 AND event = 'e' AND host IN ('it\\'s') AND host >= "
            "'a\\\\' AND host <= 'z'");
}

TEST(SumTableTest, InsertNamesTheColumnsOfTheTable) {
  const std::string insert = InsertSums();
  const std::string create = CreateSumTable();
  size_t at = insert.find('(') + 1;
  while (at < insert.find(')')) {
    const size_t end = insert.find_first_of(",)", at);
    const std::string column = insert.substr(at, end - at);
    const size_t list = column.find('.');
    if (list != std::string::npos) {
      EXPECT_THAT(create, HasSubstr(column.substr(0, list) + " Nested(")) << insert;
    }
    EXPECT_THAT(create, HasSubstr(column.substr(list + 1) + " ")) << insert;
    at = end + 2;
  }
}

}  // namespace
}  // namespace xenoscope::store
