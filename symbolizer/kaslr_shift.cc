#include "symbolizer/kaslr_shift.h"

#include <algorithm>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/error.h"
#include "symbolizer/disassembly.h"

namespace xenoscope::symbolizer {
namespace {

constexpr Address kAlignment = Address{2} << 20;
constexpr Address kMaxShift = Address{1} << 30;
// Least number of addresses: where three in ten fit by chance, 15 of 16 fit under any of 512 shifts
// once in 10 000 kernels.
constexpr size_t kMinAddresses = 16;
// Limit of the code of one function; beyond it no address fits.
constexpr uint64_t kMaxCodeBytes = 16 * 1024;

class ShiftChecker {
 public:
  ShiftChecker(const ImageFile& kernel, const SymbolIndex& symbols, Disassembler disassembler)
      : kernel_(kernel), symbols_(symbols), disassembler_(disassembler) {}

  bool IsInstruction(Address linked) {
    const uint32_t symbol = symbols_.Find(linked);
    if (symbol == SymbolIndex::kNoSymbol) return false;
    const Address start = symbols_.Start(symbol);
    const auto [starts, is_new] = starts_.try_emplace(symbol);
    if (is_new) {
      const uint64_t size = std::min(symbols_.End(symbol) - start, kMaxCodeBytes);
      starts->second = disassembler_.InstructionStarts(kernel_.CodeAt(start, size), start);
    }
    return std::ranges::binary_search(starts->second, linked);
  }

  size_t Count(std::span<const Address> addresses, Address shift) {
    return static_cast<size_t>(std::ranges::count_if(
        addresses, [&](Address address) { return IsInstruction(address - shift); }));
  }

 private:
  const ImageFile& kernel_;
  const SymbolIndex& symbols_;
  Disassembler disassembler_;
  absl::flat_hash_map<uint32_t, std::vector<Address>> starts_;  // by symbol
};

}  // namespace

absl::StatusOr<KaslrShift> FindKaslrShift(const ImageFile& kernel, const SymbolIndex& symbols,
                                          std::span<const Address> sampled) {
  std::vector<Address> addresses(sampled.begin(), sampled.end());
  std::ranges::sort(addresses);
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  XENOSCOPE_ASSIGN_OR_RETURN(const Disassembler disassembler, Disassembler::Load());
  ShiftChecker fit(kernel, symbols, disassembler);
  if (addresses.size() < kMinAddresses) {
    const size_t fitting = fit.Count(addresses, 0);
    if (10 * fitting >= 9 * addresses.size()) return KaslrShift{0, addresses.size(), fitting};
    return NotFoundError("{} different addresses are too few to find its KASLR shift",
                         addresses.size());
  }
  // The addresses that are examined, and the first ones of them, are spread over all.
  std::vector<Address> chosen;
  const size_t count = std::min(addresses.size(), kMaxKaslrAddresses);
  for (size_t i = 0; i < count; ++i) {
    // Steps of a prime number visit all indices before any index returns.
    chosen.push_back(addresses[i * 7919 % count * addresses.size() / count]);
  }
  const std::span<const Address> few = std::span(chosen).first(kMinAddresses);
  KaslrShift best;
  size_t second = 0;
  for (Address shift = 0; shift < kMaxShift; shift += kAlignment) {
    if (10 * fit.Count(few, shift) < 6 * few.size()) continue;
    const size_t fitting = fit.Count(chosen, shift);
    if (fitting > best.fitting) {
      second = best.fitting;
      best = {shift, chosen.size(), fitting};
    } else {
      second = std::max(second, fitting);
    }
  }
  if (10 * best.fitting < 9 * chosen.size()) {
    return NotFoundError("no KASLR shift makes its {} sampled addresses instructions",
                         chosen.size());
  }
  if (10 * second >= 6 * chosen.size()) {
    return NotFoundError("its sampled addresses fit two KASLR shifts");
  }
  return best;
}

}  // namespace xenoscope::symbolizer
