// The sums of a slice with the names of their keys, for stores that have no tables of keys.
//
// Consecutive slices of a host have nearly the same names, and other numbers. So the names are a
// text of their own: a database compresses it together with those of the slices beside it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
#include "base/hash.h"
#include "base/interner.h"
#include "base/string_interner.h"
#include "store/packed_sums.h"
#include "store/slice.h"
#include "store/store.h"

namespace xenoscope::store {

struct PackedSlice {
  std::string names;   // each once, in ascending order, each with kEndOfName after it
  std::string packed;  // numbers of keys and names are from 1 on, in the order of `names`
};
inline constexpr char kEndOfName = '\n';

// Errors: InvalidArgument if a name has the character kEndOfName; those of zstd. O(dictionary +
// sums log(sums)).
absl::StatusOr<PackedSlice> PackNamed(const SliceSums& sums, const Dictionary& dictionary);

// Reads what PackNamed has returned. The bytes may be from anywhere.
class NamedReader final : public KeyReader {
 public:
  // The dictionary outlives the reader.
  explicit NamedReader(Dictionary& dictionary) : dictionary_(dictionary) {}

  // Reads the sums that are wanted into `sums`, and leaves no others there. Errors
  // (InvalidArgument): the bytes are something else. O(names + sums).
  absl::Status Read(std::string_view names, PlaneReader& packed, const WantedSums& wanted,
                    SliceSums& sums);
  // The same of a value that is still compressed.
  absl::Status Read(std::string_view names, Bytes packed, const WantedSums& wanted,
                    SliceSums& sums);

  using KeyReader::Read;
  absl::Status Read(EntryId id, std::string& name) override;

 private:
  // A key: numbers of its names in all_names_, then what else it has.
  struct Key {
    uint32_t a = 0;
    uint32_t b = 0;
    uint32_t c = 0;

    bool operator==(const Key&) const = default;
    template <typename H>
    friend H AbslHashValue(H h, const Key& key) {
      return H::combine(std::move(h), key.a, key.b, key.c);
    }
    [[nodiscard]] uint64_t Mixed() const {
      return MultiplyHash(uint64_t{a} << 32 ^ uint64_t{b} << 8 ^ c) >> 32;
    }
  };
  // The keys of all slices, and their numbers in the dictionary; kUnknown: not as it must be.
  struct Numbers {
    Interner<Key, 4096> keys;
    std::vector<uint32_t> numbers;
  };

  absl::Status Find(EntryId id, VcpuNumber& vcpu) override;
  absl::Status Find(EntryId id, ContextNumber& context) override;
  absl::Status Find(EntryId id, CodeNumber& code) override;

  // Sets names_ to the numbers of the names in this text.
  absl::Status SetNames(std::string_view text);
  uint32_t NumberOf(std::string_view name);
  // Reads a table of keys, which have so many names and other columns, into Known. `make` makes a
  // key that is new; it returns nothing where it is not as it must be.
  template <typename Number, typename Make>
  absl::Status ReadKeys(PlaneReader& in, size_t names, size_t columns, Numbers& numbers, Make make);
  absl::Status ReadAllKeys(PlaneReader& in);
  const std::string& TextOf(uint32_t number) const { return all_names_.all()[number]; }

  Dictionary& dictionary_;
  StringInterner all_names_;
  std::vector<uint32_t> names_;  // those of the slice, in all_names_
  Numbers vcpus_;
  Numbers contexts_;
  Numbers codes_;
  std::array<std::vector<uint32_t>, 3> columns_;
  Unpacker unpacker_;
  PlaneReader planes_;
};

}  // namespace xenoscope::store
