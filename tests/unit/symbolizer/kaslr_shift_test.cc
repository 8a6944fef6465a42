// A kernel that was moved is found by its instructions, and there is no guess from too few. This
// program, which is long enough, takes the kernel's place.
#include "symbolizer/kaslr_shift.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/error.h"
#include "symbolizer/disassembly.h"

namespace xenoscope::symbolizer {
namespace {

using testing::HasSubstr;

constexpr Address kShift = 0x1a40'0000;

class KaslrShiftTest : public ::testing::Test {
 protected:
  KaslrShiftTest()
      : kernel_(ImageFile::Open(FileContent::Open("/proc/self/exe").value(), "kernel", FileFinder())
                    .value()),
        read_(kernel_->ReadSymbols("kernel").value()),
        symbols_(SymbolIndex::Build(read_.table).value()) {}

  // Returns addresses of instructions in functions all over the program, as they are when it was
  // moved.
  std::vector<Address> Instructions(size_t count, Address shift) {
    std::vector<Address> addresses;
    while (addresses.size() < count) {
      const auto function = static_cast<uint32_t>(random_() % symbols_.size());
      const Address start = symbols_.Start(function);
      const auto starts = disassembler_.InstructionStarts(
          kernel_->CodeAt(start, symbols_.End(function) - start), start);
      if (starts.size() < 2) continue;
      const Address at = starts[random_() % starts.size()];
      if (symbols_.Find(at) == function) addresses.push_back(at + shift);
    }
    return addresses;
  }
  std::vector<Address> Anywhere(size_t count) {
    std::vector<Address> addresses(count);
    for (Address& address : addresses) {
      address = kShift + symbols_.begin() + random_() % (symbols_.end() - symbols_.begin());
    }
    return addresses;
  }

  std::mt19937_64 random_{1};  // NOLINT(cert-msc51-cpp): the same every time
  std::unique_ptr<ImageFile> kernel_;
  ElfSymbols read_;
  SymbolIndex symbols_;
  Disassembler disassembler_ = Disassembler::Load().value();
};

TEST_F(KaslrShiftTest, PutsSampledAddressesOnInstructions) {
  for (const Address shift : {Address{0}, kShift}) {
    const auto found = FindKaslrShift(*kernel_, symbols_, Instructions(40, shift));
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->shift, shift);
    EXPECT_GE(10 * found->fitting, 9 * found->addresses);
  }
}

TEST_F(KaslrShiftTest, ToleratesFewForeignAddresses) {
  std::vector<Address> addresses = Instructions(95, kShift);
  const std::vector<Address> wrong = Anywhere(5);
  addresses.insert(addresses.end(), wrong.begin(), wrong.end());
  const auto found = FindKaslrShift(*kernel_, symbols_, addresses);
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(found->shift, kShift);
}

TEST_F(KaslrShiftTest, NeedsEnoughAddresses) {
  const std::vector<Address> few = Instructions(5, kShift);
  std::vector<Address> addresses;
  for (int i = 0; i < 16; ++i) addresses.insert(addresses.end(), few.begin(), few.end());
  const auto found = FindKaslrShift(*kernel_, symbols_, addresses);
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(std::string(Message(found.status())), HasSubstr("too few"));
  const auto unmoved = FindKaslrShift(*kernel_, symbols_, Instructions(5, 0));
  ASSERT_TRUE(unmoved.ok()) << "they fit where the file has them";
  EXPECT_EQ(unmoved->shift, 0);
}

TEST_F(KaslrShiftTest, RefusesOtherKernel) {
  const auto found = FindKaslrShift(*kernel_, symbols_, Anywhere(200));
  ASSERT_FALSE(found.ok());
  EXPECT_THAT(std::string(Message(found.status())), HasSubstr("no KASLR shift"));
}

}  // namespace
}  // namespace xenoscope::symbolizer
