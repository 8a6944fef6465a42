// Fuzzes unwinding: call frame information, ORC, tables of the cache with a correct checksum, and
// stacks. There is no crash, no hang and no read outside; chains are bounded. Byte 0 says what the
// bytes behind it are: .eh_frame, .debug_frame, a table, or .orc_unwind_ip and .orc_unwind. They
// are the stack, too.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/crc.h"
#include "symbolizer/unwind/unwinder.h"

namespace {

namespace symbolizer = xenoscope::symbolizer;
using xenoscope::Address;

// All addresses are code of one table.
class OneTable final : public symbolizer::UnwindCodeSource {
 public:
  explicit OneTable(const symbolizer::UnwindTable& table) : table_(table) {}
  symbolizer::UnwindCode CodeAt(xenoscope::AddressSpaceId /*space*/, Address address) override {
    // The lowest addresses are user mode, as a kernel sees it.
    constexpr Address kUserEnd = 64;
    return {.mapped = address < (Address{1} << 47),
            .table = &table_,
            .address = address,
            .entered_kernel = address < kUserEnd};
  }

 private:
  const symbolizer::UnwindTable& table_;
};

std::string Checked(std::string table) {
  if (!symbolizer::UnwindTable::Open(xenoscope::AsBytes(table)).ok()) std::abort();
  return table;
}

std::string OrcTableOf(xenoscope::Bytes bytes) {
  constexpr size_t kAddressSize = 4;
  constexpr size_t kEntrySize = 6;
  const size_t entries = bytes.size() / (kAddressSize + kEntrySize);
  std::string table =
      symbolizer::MakeUnwindTable({bytes.first(entries * kAddressSize), 0x1000,
                                   bytes.subspan(entries * kAddressSize, entries * kEntrySize)});
  return entries == 0 ? table : Checked(std::move(table));
}

std::string TableOf(uint8_t kind, const std::string& bytes) {
  constexpr int kKinds = 4;
  if (kind % kKinds < 2) {
    const symbolizer::CfiSection section{xenoscope::AsBytes(bytes), 0x1000, kind % kKinds == 0};
    return Checked(symbolizer::MakeUnwindTable({&section, 1}));
  }
  if (kind % kKinds == 3) return OrcTableOf(xenoscope::AsBytes(bytes));
  constexpr size_t kCrcAt = 12;  // offset of the CRC, which is of all that follows it
  std::string table = bytes;
  if (table.size() > kCrcAt + 4) {
    const uint32_t crc = xenoscope::Crc32(xenoscope::AsBytes(table).subspan(kCrcAt + 4));
    std::memcpy(&table[kCrcAt], &crc, sizeof crc);
  }
  return table;
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string bytes(xenoscope::AsText(std::as_bytes(std::span(data, size).subspan(1))));
  const std::string made = TableOf(data[0], bytes);
  const auto table = symbolizer::UnwindTable::Open(xenoscope::AsBytes(made));
  if (!table.ok()) return 0;
  OneTable code(*table);
  symbolizer::Unwinder unwinder(code);
  constexpr Address kStack = 0x7f0000000000;
  std::vector<Address> callers;
  // Begins at addresses that the bytes name, which a table may have, and with registers of them.
  for (size_t at = 0; at + 8 <= bytes.size() && at < 512; at += 8) {
    xenoscope::UserRegisters registers{};
    for (size_t i = 0; i < registers.size(); ++i) {
      const auto value = xenoscope::Load<uint64_t>(xenoscope::AsBytes(bytes), at + 8 * i);
      registers.at(i) = i % 2 == 0 ? value.value_or(0) : kStack + 8 * i;
    }
    registers[xenoscope::kRip] =
        xenoscope::Load<uint32_t>(xenoscope::AsBytes(bytes), at).value_or(0);
    registers[xenoscope::kRsp] = kStack;
    callers.clear();
    unwinder.Unwind({1}, registers, {kStack, xenoscope::AsBytes(bytes)}, callers);
    if (callers.size() > symbolizer::Unwinder::kMaxCallers) std::abort();
  }
  return 0;
}
