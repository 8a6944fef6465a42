#include "symbolizer/symbol_index.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace xenoscope::symbolizer {
namespace {

// Orders names of one address: the better name has fewer leading underscores, is global, and short.
bool IsBetterName(const Symbol& a, const Symbol& b) {
  const auto key = [](const Symbol& symbol) {
    const size_t underscores = std::min(symbol.name.find_first_not_of('_'), symbol.name.size());
    return std::tuple(underscores, -static_cast<int>(symbol.binding), symbol.name.size(),
                      symbol.name, symbol.image);
  };
  return key(a) < key(b);
}

// Orders symbols by address; at one address the longest comes first, then the best name.
bool IsBefore(const Symbol& a, const Symbol& b) {
  if (a.address != b.address) return a.address < b.address;
  if (a.size != b.size) return a.size > b.size;
  return IsBetterName(a, b);
}

Address Saturated(Address address, uint64_t size) {
  return size > kLastAddress - address ? kLastAddress : address + size;
}

}  // namespace

absl::StatusOr<SymbolIndex> SymbolIndex::Build(const SymbolTable& table) {
  if (table.functions.empty()) return NotFoundError("it contains no functions");
  std::vector<Symbol> sorted = table.functions;
  // No function begins at address 0 or holds the last address, so the first and the last range are
  // always gaps.
  std::erase_if(sorted, [](const Symbol& symbol) {
    return symbol.address == 0 || symbol.address == kLastAddress || symbol.name.empty();
  });
  if (sorted.empty()) return NotFoundError("it contains no functions with an address");
  std::sort(sorted.begin(), sorted.end(), IsBefore);
  // There is one name for each address and size, and none without a size where another has one.
  sorted.erase(std::unique(sorted.begin(), sorted.end(),
                           [](const Symbol& a, const Symbol& b) {
                             return a.address == b.address && (a.size == b.size || b.size == 0);
                           }),
               sorted.end());
  std::vector<Address> ends = table.ends;
  std::sort(ends.begin(), ends.end());

  SymbolIndex index;
  index.images_ = table.images;
  RangeSweep sweep;
  auto next_end = ends.begin();
  for (size_t i = 0; i < sorted.size(); ++i) {
    const Symbol& symbol = sorted[i];
    sweep.CloseUntil(symbol.address);
    Address end = Saturated(symbol.address, symbol.size);
    if (symbol.size == 0) {
      if (sweep.IsOpen()) continue;  // it is a label inside a function
      end = Saturated(symbol.address, kMaxUnsizedBytes);
      if (i + 1 < sorted.size()) end = std::min(end, sorted[i + 1].address);
      next_end = std::upper_bound(next_end, ends.end(), symbol.address);
      if (next_end != ends.end()) end = std::min(end, *next_end);
    }
    if (symbol.name.size() > std::numeric_limits<uint32_t>::max() - index.names_.size()) {
      return ExhaustedError("its names are longer than 4 GiB together");
    }
    sweep.Open(symbol.address, end, index.size());
    index.symbols_.push_back({.start = symbol.address,
                              .end = end,
                              .name_at = static_cast<uint32_t>(index.names_.size()),
                              .name_size = static_cast<uint32_t>(symbol.name.size()),
                              .image = symbol.image});
    index.names_ += symbol.name;
  }
  index.ranges_ = std::move(sweep).Finish();
  return index;
}

uint64_t SymbolIndex::MemoryUsed() const {
  return ranges_.MemoryUsed() + symbols_.capacity() * sizeof(Entry) + names_.capacity();
}

std::string_view SymbolIndex::Name(uint32_t symbol) const {
  const Entry& entry = symbols_[symbol];
  return std::string_view(names_).substr(entry.name_at, entry.name_size);
}

}  // namespace xenoscope::symbolizer
