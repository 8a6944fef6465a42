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

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/bytes.h"
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
  };
  // The numbers in the dictionary of the keys of all slices; kUnknown: not as it must be.
  struct Numbers {
    struct Recent {
      Key key;
      uint32_t number = kUnknown;
    };
    absl::flat_hash_map<Key, uint32_t> all;
    std::vector<Recent> recent;  // by the number of a key's last name: most names are of one key
  };

  absl::Status Find(EntryId id, VcpuNumber& vcpu) override;
  absl::Status Find(EntryId id, ContextNumber& context) override;
  absl::Status Find(EntryId id, CodeNumber& code) override;

  // Sets names_ to the numbers of the names in this text.
  absl::Status SetNames(std::string_view text);
  // Returns the number of the first name of the text, which follows the name `before` there, and
  // removes it from the text; kUnknown: it has no end.
  uint32_t TakeName(uint32_t before, std::string_view& text);
  uint32_t NumberOf(std::string_view name);
  // Returns the key's number in the dictionary. `name` is the number of its last name.
  template <typename Make>
  static uint32_t NumberOf(const Key& key, uint32_t name, Numbers& numbers, Make make);
  // Reads a table of keys, which have so many names and other columns, into Known. `make` makes a
  // key that is new; it returns nothing where it is not as it must be.
  template <typename Number, size_t kNames, size_t kColumns, typename Make>
  absl::Status ReadKeys(PlaneReader& in, Numbers& numbers, Make make);
  absl::Status ReadAllKeys(PlaneReader& in);
  const std::string& TextOf(uint32_t number) const { return all_names_.all()[number]; }

  Dictionary& dictionary_;
  StringInterner all_names_;
  std::vector<uint32_t> names_;  // those of the slice, in all_names_
  // By the number of a name, from 1 on: the name that followed it most recently. 0: the first one.
  std::vector<uint32_t> next_;
  Numbers vcpus_;
  Numbers contexts_;
  Numbers codes_;
  std::array<std::vector<uint32_t>, 3> columns_;
  Unpacker unpacker_;
  PlaneReader planes_;
};

}  // namespace xenoscope::store
