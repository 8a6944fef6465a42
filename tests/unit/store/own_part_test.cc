// What a domain's owner gets of a slice: all figures of its own domain, and no byte of anything
// else's name.
#include "store/own_part.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <cmath>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "analysis/find_figure.h"
#include "store/gather_trace.h"
#include "store/merge.h"
#include "store/slice_bytes.h"
#include "store/store.h"
#include "store/tables.h"
#include "store/trace_totals.h"
#include "tests/unit/store/simulated_host.h"

namespace xenoscope::store {
namespace {

using analysis::Figure;
using analysis::FindRow;
using correlate::Dimension;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAreArray;

const Owner kOwner{"d1", {{"d1", "web"}, {"d0", "Domain-0"}}};

// Code is its domain's, or Xen's. All that the owner must not see has the word "secret".
class OwnedFunctions final : public Resolver {
 public:
  FunctionId Resolve(DomainId domain, Mode mode, Address address) override {
    Function function;
    if (mode == Mode::kXen) {
      function = {"xen-syms-of-secret", fmt::format("xen_f{}", address % 5), ""};
    } else if (domain == DomainId{1}) {
      function = {address % 2 == 0 ? "vmlinux" : "nginx", fmt::format("web_f{}", address), ""};
    } else {
      function = {"secret-image", fmt::format("secret_f{}", address), ""};
    }
    functions_.push_back(function);
    return {static_cast<uint32_t>(functions_.size() - 1)};
  }
  const Function& Describe(FunctionId id) const override { return functions_[id.value]; }
  std::vector<Frame> Inlined(DomainId /*domain*/, Mode /*mode*/, Address /*address*/) override {
    return {};
  }

 private:
  std::vector<Function> functions_;
};

void AddFigure(KeyedSlice& keyed, TraceFigure figure, const VcpuKey& vcpu, const std::string& name,
               const std::string& part, const std::string& other, double count, double cycles) {
  keyed.slice.sums.trace.push_back(
      {figure, keyed.dictionary.vcpus.Intern(vcpu), name, part, other, count, cycles});
}

// What traces of three domains show: d1 waits for d2, d7, d0, itself, and others.
void AddTrace(KeyedSlice& keyed) {
  const VcpuKey web{"d1", 0};
  const VcpuKey db{"d2", 0};
  AddFigure(keyed, kRunstateFigure, web, "running", "", "", 0, 1000);
  AddFigure(keyed, kRunstateFigure, web, "runnable", "", "", 4, 175);
  AddFigure(keyed, kRunstateFigure, db, "running", "", "", 0, 500);
  AddFigure(keyed, kWaitFigure, web, "preempt", "", "d2", 0, 20);
  AddFigure(keyed, kWaitFigure, web, "wake", "", "d7", 0, 50);
  AddFigure(keyed, kWaitFigure, web, "preempt", "", "d7", 0, 30);
  AddFigure(keyed, kWaitFigure, web, "preempt", "", "d0", 0, 10);
  AddFigure(keyed, kWaitFigure, web, "preempt", "", "d1", 0, 40);
  AddFigure(keyed, kWaitFigure, web, "preempt", "", "(others)", 0, 5);
  AddFigure(keyed, kWaitFigure, web, "not known who ran", "", "", 0, 20);
  AddFigure(keyed, kWaitFigure, db, "preempt", "", "d1", 0, 60);
  AddFigure(keyed, kExitFigure, web, "VMEXIT_CPUID", "cpuid: leaf 7", "", 9, 90);
  AddFigure(keyed, kExitFigure, db, "VMEXIT_SECRET", "secret port", "", 9, 90);
  AddFigure(keyed, kHypercallFigure, web, "sched_op", "yield", "", 3, 0);
  AddFigure(keyed, kHypercallFigure, db, "secret_op", "", "", 3, 0);
  AddFinding("waits", "d1", 40, keyed.slice.sums);
  AddFinding("exits", "d2", 40, keyed.slice.sums);
  AddFinding("losses", "", 40, keyed.slice.sums);
  keyed.slice.sums.counters.push_back({std::string(kTracedCounter), 1});
  keyed.slice.sums.counters.push_back({std::string(kHypercallsCounter), 1});
  keyed.slice.sums.counters.push_back({std::string(kTracedCyclesCounter), 2000});
  keyed.slice.sums.counters.push_back({"lost_records", 77});
  keyed.slice.sums.counters.push_back({"unresolved.no symbols for secret-db", 5});
}

// Two domains' samples, with a trace or without.
KeyedSlice MakeWhole(bool traced) {
  OwnedFunctions functions;
  std::vector<std::unique_ptr<correlate::Profile>> profiles;
  correlate::FanOutObserver observers{{}};
  constexpr double kOwnPeriod = 5000;
  for (const std::vector<Dimension>& by : GatheredColumns()) {
    profiles.push_back(std::make_unique<correlate::Profile>(
        correlate::ProfileOptions{.by = by, .period = kOwnPeriod}, functions));
    observers.Add(profiles.back().get());
  }
  SimulatedHost(11).Run(observers, 100, traced);
  profile::SampleSet samples;
  profile::ProfileResults results;
  for (const auto& profile : profiles) results.sums.push_back(profile->TakeSums());
  KeyedSlice whole;
  whole.slice.head = {.host = "secret-host",
                      .begin_ns = 0,
                      .end_ns = 1'000'000'000,
                      .clock_hz = 1'000'000'000,
                      .event = "cycles",
                      .traced = traced,
                      .period = kOwnPeriod};
  whole.slice.sums = Gather(
      samples, results, [](DomainId domain) { return fmt::format("d{}", domain.value); },
      whole.dictionary);
  AddTrace(whole);
  EXPECT_TRUE(CheckSlice(whole.slice, whole.dictionary).ok());
  return whole;
}

KeyedSlice TakePart(const KeyedSlice& whole) {
  return TakeOwnPart(whole.slice, whole.dictionary, kOwner);
}

// What is sent, without the compression of its numbers, which are the end of it.
std::string PlainBytes(const KeyedSlice& slice) {
  constexpr std::string_view kZstdMagic = "\x28\xb5\x2f\xfd";  // RFC 8878
  const auto bytes = ToBytes(slice);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  const std::string_view text = AsText(*bytes);
  const std::string_view numbers = text.substr(text.find(kZstdMagic));
  std::string plain(ZSTD_getFrameContentSize(numbers.data(), numbers.size()), '\0');
  EXPECT_EQ(ZSTD_decompress(plain.data(), plain.size(), numbers.data(), numbers.size()),
            plain.size());
  return std::string(text.substr(0, text.size() - numbers.size())) + plain;
}

// The domain's rows of a table as texts, with the names that its owner sees.
class OwnRows {
 public:
  OwnRows(const KeyedSlice& slice, std::string domain)
      : slice_(slice), domain_(std::move(domain)) {}

  template <typename Sums>
  std::vector<std::string> Of() const {
    std::vector<std::string> texts;
    for (const Sums& row : slice_.slice.sums.*Table<Sums>::kRows) {
      if (row.vcpu == kAllVcpus || slice_.dictionary.vcpus[row.vcpu].domain != domain_) continue;
      std::string text;
      std::apply([&](const auto&... fields) { ((text += TextOf(fields) + ' '), ...); },
                 Table<Sums>::Fields(row));
      texts.push_back(text);
    }
    return texts;
  }

 private:
  template <typename Figure>
  std::string TextOf(const Figure& figure) const {
    return fmt::format("{}", figure);
  }
  std::string TextOf(const std::string& name) const { return name == domain_ ? "own" : name; }
  std::string TextOf(VcpuNumber vcpu) const {
    return fmt::format("v{}", slice_.dictionary.vcpus[vcpu].number);
  }
  std::string TextOf(ContextNumber number) const {
    if (number == kAllContexts) return "all";
    const ContextKey& context = slice_.dictionary.contexts[number];
    return fmt::format("{}/{}/{}", static_cast<int>(context.kind), context.exit,
                       context.has_both_modes);
  }
  std::string TextOf(CodeNumber number) const {
    const CodeKey& code = slice_.dictionary.codes[number];
    const bool is_xen = code.image == "xen-syms-of-secret";
    return fmt::format("{}/{}/{}", static_cast<int>(code.mode), is_xen ? "xen" : code.image,
                       code.function);
  }

  const KeyedSlice& slice_;
  std::string domain_;
};

std::map<std::string, correlate::ProfileRow> RowsOf(const KeyedSlice& slice,
                                                    std::vector<Dimension> by,
                                                    const std::string& domain) {
  auto merger = Merger::By(std::move(by));
  EXPECT_TRUE(merger.ok() && merger->Add(slice.slice, slice.dictionary).ok());
  const auto merged = merger->Finish();
  EXPECT_TRUE(merged.ok()) << merged.status();
  std::map<std::string, correlate::ProfileRow> rows;
  for (const correlate::ProfileRow& row : merged->result.rows) {
    if (merged->domains.at(row.domain.value) != domain) continue;
    const bool is_exit = row.exit.kind == correlate::ContextKind::kExit;
    rows[fmt::format("{} {} {} {} {}", row.vcpu.value, static_cast<int>(row.mode), row.function,
                     static_cast<int>(row.exit.kind),
                     is_exit           ? merged->exits.at(row.exit.reason)
                     : row.exit.nested ? "nested"
                                       : "")] = row;
  }
  return rows;
}

analysis::Section TotalsOf(const KeyedSlice& slice, const std::string& domain) {
  TraceTotals totals(slice.slice.head.clock_hz);
  totals.Add(slice.slice, slice.dictionary);
  return totals.Describe({.by_vcpu = false, .domains = {domain}});
}

class OwnPartTest : public ::testing::TestWithParam<bool> {};

TEST_P(OwnPartTest, HasNoByteOfTheOthers) {
  const KeyedSlice whole = MakeWhole(GetParam());
  ASSERT_THAT(PlainBytes(whole), HasSubstr("secret"));
  const std::string sent = PlainBytes(TakePart(whole));
  EXPECT_THAT(sent, Not(HasSubstr("secret")));
  EXPECT_THAT(sent, Not(HasSubstr("SECRET")));
  for (const char* const name : {"d0", "d1", "d2", "d7", "lost_records", "losses", "unresolved"}) {
    EXPECT_THAT(sent, Not(HasSubstr(name)));
  }
  for (const char* const name : {"web_f3", "xen_f1", "web", "Domain-0", "other 1", "this host"}) {
    EXPECT_THAT(sent, HasSubstr(name));
  }
}

TEST_P(OwnPartTest, HasTheSumsOfTheDomain) {
  const KeyedSlice whole = MakeWhole(GetParam());
  const KeyedSlice part = TakePart(whole);
  ASSERT_TRUE(CheckSlice(part.slice, part.dictionary).ok());
  const OwnRows expected(whole, "d1");
  const OwnRows rows(part, "web");
  EXPECT_EQ(rows.Of<StratumSums>(), expected.Of<StratumSums>());
  EXPECT_EQ(rows.Of<VcpuSums>(), expected.Of<VcpuSums>());
  EXPECT_THAT(rows.Of<PairSums>(), UnorderedElementsAreArray(expected.Of<PairSums>()));
  EXPECT_EQ(rows.Of<PartSums>(), expected.Of<PartSums>());
  EXPECT_EQ(rows.Of<UnionSums>(), expected.Of<UnionSums>());
  EXPECT_EQ(rows.Of<CrossSums>(), expected.Of<CrossSums>());
  EXPECT_FALSE(rows.Of<PartSums>().empty());
}

// Shares are of its own time. What entries and exits of guests cost is estimated of all vCPUs that
// are there: with a trace, the time of guests differs a little.
TEST_P(OwnPartTest, MakesTheProfileOfTheDomain) {
  const KeyedSlice whole = MakeWhole(GetParam());
  const KeyedSlice part = TakePart(whole);
  for (const std::vector<Dimension>& by :
       {std::vector{Dimension::kDomain}, std::vector{Dimension::kDomain, Dimension::kVcpu},
        std::vector{Dimension::kDomain, Dimension::kMode, Dimension::kFunction},
        std::vector{Dimension::kDomain, Dimension::kExit, Dimension::kFunction}}) {
    const auto expected = RowsOf(whole, by, "d1");
    const auto rows = RowsOf(part, by, "web");
    ASSERT_FALSE(rows.empty());
    ASSERT_EQ(rows.size(), expected.size());
    double share = 0;
    for (const auto& [key, row] : rows) {
      ASSERT_TRUE(expected.contains(key)) << key;
      const correlate::ProfileRow& same = expected.at(key);
      const bool is_exit = row.exit.kind == correlate::ContextKind::kExit;
      EXPECT_NEAR(row.samples, same.samples, 1e-6) << key;
      EXPECT_NEAR(row.cycles, same.cycles, GetParam() && !is_exit ? 0.1 * same.cycles : 1e-3);
      share += row.share;
      if (!is_exit) continue;
      const double error = std::sqrt(row.variance) / row.share;
      EXPECT_NEAR(error, std::sqrt(same.variance) / same.share, 1e-9) << key;
    }
    EXPECT_NEAR(share, 1, 1e-9);
    EXPECT_TRUE(RowsOf(part, by, "Domain-0").empty());
  }
}

TEST_P(OwnPartTest, HasTheFiguresOfItsTrace) {
  const KeyedSlice whole = MakeWhole(GetParam());
  const KeyedSlice part = TakePart(whole);
  const analysis::Section expected = TotalsOf(whole, "d1");
  const analysis::Section section = TotalsOf(part, "web");
  for (const char* const group : {"runstates", "exits", "hypercalls"}) {
    const analysis::MetricRow* const row = FindRow(section, group, "web");
    const analysis::MetricRow* const same = FindRow(expected, group, "d1");
    ASSERT_TRUE(row != nullptr && same != nullptr) << group;
    EXPECT_EQ(row->metrics, same->metrics) << group;
    EXPECT_EQ(row->parts, same->parts) << group;
  }
  // All of its waiting, for each domain as long as it was.
  const analysis::MetricRow* const waits = FindRow(section, "waited_for", "web");
  ASSERT_NE(waits, nullptr);
  EXPECT_EQ(Figure(*waits, "cycles"), Figure(*FindRow(section, "runstates", "web"), "runnable"));
  std::vector<std::string> runners;
  for (const analysis::MetricRow& runner : waits->parts) {
    runners.push_back(fmt::format("{} {}", runner.name, Figure(runner, "cycles")));
  }
  EXPECT_THAT(runners, ElementsAre("other 1 80", "web 40", "not known who ran 20", "other 2 20",
                                   "Domain-0 10", "(others) 5"));
  EXPECT_EQ(section.groups.at(0).rows.size(), 1U);
  EXPECT_NE(FindRow(section, "findings", "waits web"), nullptr);
  TraceTotals totals(1'000'000'000);
  totals.Add(part.slice, part.dictionary);
  EXPECT_EQ(totals.traced(), 2000U);
  EXPECT_EQ(totals.hypercall_slices(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Traces, OwnPartTest, ::testing::Bool());

// The owner may learn its own name and dom0's only where the caller says so.
TEST(OwnPart, NamesNobodyByItself) {
  const KeyedSlice whole = MakeWhole(true);
  const std::string sent = PlainBytes(TakeOwnPart(whole.slice, whole.dictionary, {"d1", {}}));
  EXPECT_THAT(sent, HasSubstr("this domain"));
  EXPECT_THAT(sent, Not(HasSubstr("Domain-0")));
}

TEST(OwnPart, IsEmptyForADomainThatIsNotThere) {
  const KeyedSlice whole = MakeWhole(true);
  const KeyedSlice part = TakeOwnPart(whole.slice, whole.dictionary, {"d9", {{"d9", "new"}}});
  EXPECT_TRUE(part.dictionary.vcpus.all().empty());
  EXPECT_TRUE(part.dictionary.codes.all().empty());
  EXPECT_TRUE(part.slice.sums.strata.empty());
  EXPECT_TRUE(part.slice.sums.trace.empty());
  EXPECT_TRUE(CheckSlice(part.slice, part.dictionary).ok());
}

}  // namespace
}  // namespace xenoscope::store
