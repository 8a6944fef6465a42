// Tests when a page's rows have their samples.
#include "report/html/page_over_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

namespace xenoscope::report {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::SizeIs;

class TwoFunctions final : public Resolver {
 public:
  FunctionId Resolve(DomainId /*domain*/, Mode /*mode*/, Address /*address*/) override {
    return {};
  }
  const Function& Describe(FunctionId id) const override { return functions_.at(id.value); }
  std::vector<Frame> Inlined(DomainId /*domain*/, Mode /*mode*/, Address /*address*/) override {
    return {};
  }

 private:
  std::vector<Function> functions_ = {{"web", "serve", ""}, {"web", "log", ""}};
};

class PageOverTimeTest : public testing::Test {
 protected:
  static constexpr uint64_t kBin = 1024;

  void Add(uint32_t function, uint64_t begin, uint64_t end, uint64_t count = 1) {
    const std::vector<correlate::Place> places = {{kExit, {}, 0.75}, {{}, {}, 0.25}};
    over_time_.Add({.sample = &sample_,
                    .vcpu = kVcpu,
                    .places = places,
                    .function = FunctionId{function},
                    .when = {Tsc{begin}, Tsc{end}},
                    .count = count});
  }
  std::vector<correlate::BinAmount> TimesOf(const char* name, const correlate::Context& context) {
    return over_time_.ByKey()[{kVcpu, sample_.mode, PageOverTime::ExitOf(context), name}];
  }

  static constexpr VcpuRef kVcpu{DomainId{1}, VcpuId{0}};
  static constexpr correlate::Context kExit{correlate::ContextKind::kExit, false, 7};
  recording::Sample sample_;
  TwoFunctions resolver_;
  PageOverTime over_time_{resolver_};
};

TEST_F(PageOverTimeTest, SplitsSamplesOverPlacesAndTime) {
  Add(0, 5 * kBin, 5 * kBin + 1, 4);
  Add(1, 6 * kBin, 8 * kBin);
  ASSERT_EQ(over_time_.width(), kBin);
  EXPECT_THAT(over_time_.ByKey(), SizeIs(4));
  EXPECT_THAT(TimesOf("serve", kExit), ElementsAre(FieldsAre(5, 3)));
  EXPECT_THAT(TimesOf("serve", {}), ElementsAre(FieldsAre(5, 1)));
  EXPECT_THAT(TimesOf("log", kExit), ElementsAre(FieldsAre(6, 0.375), FieldsAre(7, 0.375)));
}

TEST_F(PageOverTimeTest, CountsSamplesWithoutAnInstant) {
  Add(0, 5 * kBin, 5 * kBin + 1, 3);
  Add(0, 6 * kBin, 16 * kBin);
  EXPECT_DOUBLE_EQ(over_time_.WithoutTime(), 0.25);
}

}  // namespace
}  // namespace xenoscope::report
