// The sums of a slice with the names of their keys, which may be anyone's.
#include "store/named_sums.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zstd.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "store/slice.h"

namespace xenoscope::store {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

class NamedSumsTest : public ::testing::Test {
 protected:
  // Sums with a row of each kind, and one of a function.
  static SliceSums Make(const std::string& function, Dictionary& dictionary) {
    dictionary.codes.Intern({Mode::kUser, "unused", "unused"});
    const VcpuNumber vcpu = dictionary.vcpus.Intern({"web", 3});
    const ContextNumber exit =
        dictionary.contexts.Intern({correlate::ContextKind::kExit, "VMEXIT_CPUID", true});
    const CodeNumber code = dictionary.codes.Intern({Mode::kXen, "xen", "do_cpuid"});
    const CodeNumber other = dictionary.codes.Intern({Mode::kKernel, "vmlinux", function});
    SliceSums sums;
    sums.strata.push_back({vcpu, exit, 1e6, 2, {3, 5, 2}});
    sums.vcpus.push_back({vcpu, {2, 3, 5}, 5, {{1, 1, 1}, {3, 5, 2}}, 2, 40});
    sums.pairs.push_back({vcpu, exit, exit, 5});
    sums.parts.push_back({vcpu, exit, code, {1.5, 1.25, 2}, 2});
    sums.parts.push_back({vcpu, exit, other, {2.5, 1.25, 2}, 2});
    sums.unions.push_back({vcpu, code, {1.25, 2}});
    sums.crosses.push_back({kFunctionColumn, vcpu, kAllContexts, code, 0.25});
    sums.counters.push_back({"samples", 3});
    sums.trace.push_back({kFindingFigure, kAllVcpus, "rule", "", "db", 4, 500});
    return sums;
  }
  static PackedSlice Pack(const std::string& function) {
    Dictionary dictionary;
    const SliceSums sums = Make(function, dictionary);
    auto packed = PackNamed(sums, dictionary);
    EXPECT_TRUE(packed.ok()) << packed.status();
    return *std::move(packed);
  }
  // The numbers of a value, without its compression, and a value of numbers.
  static std::string Unpressed(const std::string& packed) {
    std::string bytes(ZSTD_getFrameContentSize(packed.data(), packed.size()), '\0');
    ZSTD_decompress(bytes.data(), bytes.size(), packed.data(), packed.size());
    return bytes;
  }
  static std::string Pressed(std::string_view bytes) {
    std::string packed(ZSTD_compressBound(bytes.size()), '\0');
    packed.resize(ZSTD_compress(packed.data(), packed.size(), bytes.data(), bytes.size(), 1));
    return packed;
  }
  absl::Status Read(const std::string& names, const std::string& packed,
                    const WantedSums& wanted = {}) {
    return reader_.Read(names, AsBytes(packed), wanted, sums_);
  }

  Dictionary dictionary_;
  NamedReader reader_{dictionary_};
  SliceSums sums_;
};

TEST_F(NamedSumsTest, HasEachNameOnceInOrder) {
  EXPECT_EQ(Pack("f").names, "\nVMEXIT_CPUID\ndb\ndo_cpuid\nf\nrule\nsamples\nvmlinux\nweb\nxen\n");
}

// A slice from outside may have them. Packed again, it must be the same.
TEST_F(NamedSumsTest, KeepsOrderOfRowsOfOneKey) {
  Dictionary dictionary;
  SliceSums sums = Make("f", dictionary);
  const PartSums part = sums.parts.back();
  for (size_t i = 0; i < 100; ++i) {
    sums.parts.push_back(part);
    sums.parts.back().sums.x = static_cast<double>(i);
  }
  const auto packed = PackNamed(sums, dictionary);
  ASSERT_TRUE(packed.ok()) << packed.status();
  ASSERT_TRUE(Read(packed->names, packed->packed).ok());
  ASSERT_THAT(sums_.parts, SizeIs(102));
  for (size_t i = 0; i < 100; ++i) EXPECT_EQ(sums_.parts[i + 1].sums.x, static_cast<double>(i));
}

TEST_F(NamedSumsTest, ReadsWhatWasPacked) {
  // Names come, stay and go from slice to slice.
  for (const char* const function : {"f", "zz", "f", "", "do_cpuid", "f"}) {
    const PackedSlice packed = Pack(function);
    ASSERT_TRUE(Read(packed.names, packed.packed).ok());
    ASSERT_THAT(sums_.parts, SizeIs(2));
    EXPECT_EQ(dictionary_.codes[sums_.parts[0].code],
              (CodeKey{Mode::kKernel, "vmlinux", function}));
    EXPECT_EQ(dictionary_.vcpus[sums_.parts[0].vcpu], (VcpuKey{"web", 3}));
    EXPECT_EQ(sums_.parts[0].sums.x, 2.5);
    EXPECT_EQ(sums_.trace[0].vcpu, kAllVcpus);
    EXPECT_EQ(sums_.crosses[0].context, kAllContexts);
    EXPECT_EQ(sums_.trace[0].other, "db");
    const auto again = PackNamed(sums_, dictionary_);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(again->names, packed.names);
    EXPECT_EQ(again->packed, packed.packed);
  }
}

TEST_F(NamedSumsTest, ReadsWhatIsWanted) {
  const PackedSlice packed = Pack("f");
  ASSERT_TRUE(Read(packed.names, packed.packed, {.unions = false, .trace = false}).ok());
  EXPECT_THAT(sums_.parts, SizeIs(2));
  EXPECT_THAT(sums_.counters, SizeIs(1));
  EXPECT_TRUE(sums_.unions.empty() && sums_.pairs.empty() && sums_.trace.empty());
  ASSERT_TRUE(Read(packed.names, packed.packed, {.profile = false}).ok());
  EXPECT_TRUE(sums_.parts.empty() && sums_.strata.empty());
  EXPECT_THAT(sums_.trace, SizeIs(1));
}

TEST_F(NamedSumsTest, RefusesWhatIsSomethingElse) {
  const PackedSlice packed = Pack("f");
  EXPECT_THAT(std::string(Read("a\nb", packed.packed).message()), HasSubstr("has no end"));
  EXPECT_THAT(std::string(Read("a\nb\n", packed.packed).message()), HasSubstr("keys of a slice"));
  EXPECT_FALSE(Read("", packed.packed).ok());
  EXPECT_FALSE(Read(packed.names, packed.names).ok());
  const std::string bytes = Unpressed(packed.packed);
  // The row of traces may be missing with its table, as in slices of old files.
  const size_t without_traces = bytes.size() - 6 * sizeof(uint32_t) - 2 * sizeof(double);
  for (size_t length = 0; length < bytes.size(); ++length) {
    EXPECT_EQ(Read(packed.names, Pressed(bytes.substr(0, length))).ok(), length == without_traces)
        << length;
  }
  EXPECT_FALSE(Read(packed.names, Pressed(bytes + '\0')).ok());
  // Any byte may be another one: what is read has keys that are there.
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string other = bytes;
    other[at] = static_cast<char>(~other[at]);
    if (!Read(packed.names, Pressed(other)).ok()) continue;
    for (const PartSums& part : sums_.parts) {
      EXPECT_LT(part.code.value, dictionary_.codes.all().size()) << at;
    }
  }
  ASSERT_TRUE(Read(packed.names, packed.packed).ok());
  EXPECT_THAT(sums_.parts, SizeIs(2));
}

TEST_F(NamedSumsTest, BoundsNamesOfAnyone) {
  PackedSlice packed = Pack("f");
  const std::string other = "\x01" + std::string(2000, 'f');
  packed.names.replace(packed.names.find("\nf\n") + 1, 1, other);
  ASSERT_TRUE(Read(packed.names, packed.packed).ok());
  const std::string& function = dictionary_.codes[sums_.parts[0].code].function;
  EXPECT_THAT(function, SizeIs(1024));
  EXPECT_TRUE(function.starts_with("\\x01fff"));
}

TEST_F(NamedSumsTest, RefusesANameOfTwoLines) {
  Dictionary dictionary;
  const SliceSums sums = Make("two\nlines", dictionary);
  EXPECT_FALSE(PackNamed(sums, dictionary).ok());
}

}  // namespace
}  // namespace xenoscope::store
