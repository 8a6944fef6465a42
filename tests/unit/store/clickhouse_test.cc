// A store in ClickHouse, without a server: its URLs, and answers, which may be anyone's.
// tests/system/clickhouse.test asks servers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "store/clickhouse/group_reader.h"
#include "store/clickhouse/row_binary.h"
#include "store/clickhouse/server_url.h"
#include "store/clickhouse/sum_columns.h"
#include "store/store.h"

namespace xenoscope::store {
namespace {

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

// The answers to a question: heads of groups, then each kind of sums.
class GroupReaderTest : public ::testing::Test {
 protected:
  using Answers = std::vector<std::string>;

  static void Group(const std::string& host, RowBinaryWriter& out) {
    out.Put(std::string_view("cycles"));
    out.Put(host);
    out.Put(uint8_t{1});
    out.Put(uint64_t{2'000'000'000});
    out.Put(1.0);
    out.Put(uint8_t{1});
  }
  static void Head(const std::string& host, uint64_t count, int64_t begin, int64_t end,
                   int64_t sampled, RowBinaryWriter& out) {
    Group(host, out);
    out.Put(count);
    out.Put(begin);
    out.Put(end);
    out.Put(sampled);
    out.Put(uint64_t{5});
  }
  static void Stratum(const std::string& host, int8_t context, double clusters,
                      RowBinaryWriter& out) {
    Group(host, out);
    out.Put(std::string_view("web"));
    out.Put(uint32_t{3});
    out.Put(context);
    out.Put(std::string_view("VMEXIT_CPUID"));
    out.Put(uint8_t{1});
    for (const double sum : {1e6, 2.0, 3.0, 5.0, clusters}) out.Put(sum);
  }
  // Two hosts, of which the second one has no stratum.
  static Answers Two() {
    RowBinaryWriter heads;
    Head("a", 2, 100, 220, 90, heads);
    Head("b", 1, 100, 160, 60, heads);
    RowBinaryWriter strata;
    Stratum("a", 2, 2, strata);
    Answers answers(GroupReader::kAnswers);
    answers[0] = heads.bytes();
    answers[1] = strata.bytes();
    return answers;
  }

  Dictionary dictionary_;
  Slice slice_;
};

TEST_F(GroupReaderTest, GivesTheSumsOfEachGroup) {
  GroupReader groups(Two());
  ASSERT_TRUE(groups.Next(dictionary_, slice_));
  EXPECT_EQ(slice_.head.host, "a");
  EXPECT_EQ(slice_.count, 2);
  EXPECT_EQ(slice_.gaps_ns, 30);
  EXPECT_TRUE(slice_.head.traced);
  ASSERT_EQ(slice_.sums.strata.size(), 1);
  EXPECT_EQ(dictionary_.vcpus[slice_.sums.strata[0].vcpu], (VcpuKey{"web", 3}));
  EXPECT_EQ(slice_.sums.strata[0].totals.clusters, 2);
  EXPECT_TRUE(CheckSlice(slice_, dictionary_).ok());
  ASSERT_TRUE(groups.Next(dictionary_, slice_));
  EXPECT_EQ(slice_.head.host, "b");
  EXPECT_TRUE(slice_.sums.strata.empty());
  EXPECT_FALSE(groups.Next(dictionary_, slice_));
  EXPECT_TRUE(groups.ok());
}

TEST_F(GroupReaderTest, RefusesWhatIsNotAnAnswer) {
  const auto with = [](int8_t context, double clusters) {
    Answers answers = Two();
    RowBinaryWriter strata;
    Stratum("a", context, clusters, strata);
    answers[1] = strata.bytes();
    return answers;
  };
  Answers cut = Two();
  cut[1].pop_back();
  Answers text = Two();
  text[0] = "Code: 241. Memory limit exceeded";
  for (const Answers& answers :
       {with(99, 2), with(-1, 2), with(2, -1), with(2, 1e300), cut, text}) {
    GroupReader groups(answers);
    while (groups.Next(dictionary_, slice_)) {
    }
    EXPECT_FALSE(groups.ok());
  }
}

TEST_F(GroupReaderTest, RefusesRowsOfNoGroup) {
  Answers answers = Two();
  RowBinaryWriter strata;
  Stratum("c", 2, 2, strata);
  answers[1] = strata.bytes();
  GroupReader groups(answers);
  while (groups.Next(dictionary_, slice_)) {
  }
  EXPECT_FALSE(groups.ok());
}

TEST(SumColumnsTest, InsertNamesTheColumnsOfTheTable) {
  const std::string insert = InsertSums();
  const std::string create = CreateSumTable();
  size_t at = insert.find('(') + 1;
  while (at < insert.find(')')) {
    const size_t end = insert.find_first_of(",)", at);
    EXPECT_THAT(create, HasSubstr(insert.substr(at, end - at) + " ")) << insert;
    at = end + 2;
  }
}

}  // namespace
}  // namespace xenoscope::store
