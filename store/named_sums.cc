#include "store/named_sums.h"

#include <algorithm>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "absl/container/btree_map.h"
#include "base/error.h"
#include "base/mode.h"
#include "store/bounded_text.h"
#include "store/tables.h"

namespace xenoscope::store {
namespace {

// The most keys of one kind of a slice. What the bytes say is no reason to use memory.
constexpr uint32_t kMostKeys = uint32_t{1} << 20;

// Numbers the keys that a slice uses.
class SliceKeyWriter final : public KeyWriter {
 public:
  SliceKeyWriter(const SliceSums& sums, const Dictionary& dictionary) : dictionary_(dictionary) {
    (void)ForEachTable([&]<typename Sums>() {
      for (const Sums& row : sums.*Table<Sums>::kRows) UseKeysOf(row);
      return absl::OkStatus();
    });
    Finish();
  }

  // Appends the keys, so that the sums can be read.
  absl::Status Write(std::string& names, PlaneWriter& out) const;

  absl::StatusOr<EntryId> IdOf(const std::string& name) override { return names_.at(name); }
  absl::StatusOr<EntryId> IdOf(VcpuNumber vcpu) override { return vcpus_.IdOf(vcpu); }
  absl::StatusOr<EntryId> IdOf(ContextNumber context) override { return contexts_.IdOf(context); }
  absl::StatusOr<EntryId> IdOf(CodeNumber code) override { return codes_.IdOf(code); }

 private:
  // The keys of a kind that are used.
  template <typename Number>
  struct Used {
    std::vector<EntryId> ids;     // by number in the dictionary; 0: not used
    std::vector<Number> numbers;  // by id, from 1 on

    void Use(Number number) {
      if (number.value >= ids.size()) ids.resize(number.value + 1);
      if (ids[number.value] == 0) numbers.push_back(number);
      ids[number.value] = 1;
    }
    // Numbers them in the order of what `order` returns for them.
    template <typename Order>
    void Sort(Order order) {
      std::ranges::sort(numbers, {}, order);
      EntryId id = 0;
      for (const Number number : numbers) ids[number.value] = ++id;
    }
    [[nodiscard]] EntryId IdOf(Number number) const {
      // Those of kAllVcpus and kAllContexts are beyond the end.
      return number.value < ids.size() ? ids[number.value] : 0;
    }
  };

  void Use(VcpuNumber vcpu) {
    if (vcpu != kAllVcpus) vcpus_.Use(vcpu);
  }
  void Use(ContextNumber context) {
    if (context != kAllContexts) contexts_.Use(context);
  }
  void Use(CodeNumber code) { codes_.Use(code); }
  void Use(const std::string& name) { names_[name] = 0; }
  void Use(uint8_t /*number*/) {}
  template <typename Sums>
  void UseKeysOf(const Sums& row) {
    [&]<size_t... kField>(std::index_sequence<kField...> /*keys*/) {
      (Use(std::get<kField>(Table<Sums>::Fields(row))), ...);
    }
    (std::make_index_sequence<Table<Sums>::kKeys>());
  }
  void Finish();

  const Dictionary& dictionary_;
  absl::btree_map<std::string_view, EntryId> names_;
  Used<VcpuNumber> vcpus_;
  Used<ContextNumber> contexts_;
  Used<CodeNumber> codes_;
};

void SliceKeyWriter::Finish() {
  vcpus_.Sort([&](VcpuNumber number) {
    const VcpuKey& key = dictionary_.vcpus[number];
    return std::tuple(std::string_view(key.domain), key.number);
  });
  contexts_.Sort([&](ContextNumber number) {
    const ContextKey& key = dictionary_.contexts[number];
    return std::tuple(key.kind, std::string_view(key.exit), key.has_both_modes);
  });
  codes_.Sort([&](CodeNumber number) {
    const CodeKey& key = dictionary_.codes[number];
    return std::tuple(key.mode, std::string_view(key.image), std::string_view(key.function));
  });
  for (const VcpuNumber number : vcpus_.numbers) Use(dictionary_.vcpus[number].domain);
  for (const ContextNumber number : contexts_.numbers) Use(dictionary_.contexts[number].exit);
  for (const CodeNumber number : codes_.numbers) {
    Use(dictionary_.codes[number].image);
    Use(dictionary_.codes[number].function);
  }
  EntryId id = 0;
  for (auto& [name, number] : names_) number = ++id;
}

// Appends a table of keys. `columns` returns the numbers that stand for a key.
template <typename Number, typename Columns>
void WriteKeys(const std::vector<Number>& numbers, Columns columns, PlaneWriter& out) {
  out.Number(static_cast<uint32_t>(numbers.size()));
  constexpr size_t kWidth = std::tuple_size_v<std::invoke_result_t<Columns, Number>>;
  std::array<std::vector<uint32_t>, kWidth> values;
  for (const Number number : numbers) {
    const auto key = columns(number);
    for (size_t i = 0; i < kWidth; ++i) values.at(i).push_back(key.at(i));
  }
  for (const std::vector<uint32_t>& column : values) out.Differences(column);
}

absl::Status SliceKeyWriter::Write(std::string& names, PlaneWriter& out) const {
  if (codes_.numbers.size() > kMostKeys || names_.size() > kMostKeys ||
      vcpus_.numbers.size() > kMostKeys || contexts_.numbers.size() > kMostKeys) {
    return ExhaustedError("a slice has more than {} names of one kind; record shorter slices",
                          kMostKeys);
  }
  for (const auto& [name, id] : names_) {
    if (name.find(kEndOfName) != std::string_view::npos) {
      return InvalidError("the name '{}' has more than one line", BoundedName(name));
    }
    names += name;
    names += kEndOfName;
  }
  WriteKeys(
      vcpus_.numbers,
      [&](VcpuNumber number) {
        const VcpuKey& key = dictionary_.vcpus[number];
        return std::array{names_.at(key.domain), key.number};
      },
      out);
  WriteKeys(
      contexts_.numbers,
      [&](ContextNumber number) {
        const ContextKey& key = dictionary_.contexts[number];
        return std::array{names_.at(key.exit), static_cast<uint32_t>(key.kind),
                          uint32_t{key.has_both_modes}};
      },
      out);
  WriteKeys(
      codes_.numbers,
      [&](CodeNumber number) {
        const CodeKey& key = dictionary_.codes[number];
        return std::array{names_.at(key.image), names_.at(key.function),
                          static_cast<uint32_t>(key.mode)};
      },
      out);
  return absl::OkStatus();
}

absl::Status NoSuchKey(std::string_view kind, EntryId id) {
  return InvalidError("the store is damaged: a slice has no good {} {}", kind, id);
}

}  // namespace

absl::StatusOr<PackedSlice> PackNamed(const SliceSums& sums, const Dictionary& dictionary) {
  SliceKeyWriter keys(sums, dictionary);
  PackedSlice named;
  PlaneWriter out;
  XENOSCOPE_RETURN_IF_ERROR(keys.Write(named.names, out));
  XENOSCOPE_RETURN_IF_ERROR(PackTables(sums, keys, out));
  XENOSCOPE_ASSIGN_OR_RETURN(named.packed, out.Compressed());
  return named;
}

uint32_t NamedReader::NumberOf(std::string_view name) {
  if (const std::optional<uint32_t> known = all_names_.Find(name)) return *known;
  // Names are bounded when they are written, but the bytes may be from anywhere.
  return all_names_.Intern(BoundedName(name));
}

uint32_t NamedReader::TakeName(uint32_t before, std::string_view& text) {
  // Slices of a host have nearly the same names, in the same order.
  const std::vector<std::string>& all = all_names_.all();
  if (before >= next_.size()) next_.resize(all.size() + 1, kUnknown);
  uint32_t& next = next_[before];
  size_t length = 0;
  if (next < all.size() && text.starts_with(all[next]) && text.size() > all[next].size() &&
      text[all[next].size()] == kEndOfName) {
    length = all[next].size();
  } else {
    length = text.find(kEndOfName);
    if (length == std::string_view::npos) return kUnknown;
    next = NumberOf(text.substr(0, length));
  }
  text.remove_prefix(length + 1);
  return next;
}

absl::Status NamedReader::SetNames(std::string_view text) {
  names_.clear();
  uint32_t before = 0;
  while (!text.empty()) {
    const uint32_t name = TakeName(before, text);
    if (name == kUnknown) {
      return InvalidError("the store is damaged: the last name of a slice has no end");
    }
    names_.push_back(name);
    before = name + 1;
  }
  return absl::OkStatus();
}

template <typename Make>
uint32_t NamedReader::NumberOf(const Key& key, uint32_t name, Numbers& numbers, Make make) {
  if (name >= numbers.recent.size()) numbers.recent.resize(name + 1);
  Numbers::Recent& recent = numbers.recent[name];
  if (recent.number == kUnknown || recent.key != key) {
    const auto [at, is_new] = numbers.all.try_emplace(key, kUnknown);
    if (is_new) at->second = make(key);
    recent = {key, at->second};
  }
  return recent.number;
}

template <typename Number, size_t kNames, size_t kColumns, typename Make>
absl::Status NamedReader::ReadKeys(PlaneReader& in, Numbers& numbers, Make make) {
  uint32_t count = 0;
  bool good = in.Number(count) && count <= kMostKeys;
  for (size_t i = 0; good && i < kColumns; ++i) good = in.Differences(count, columns_.at(i));
  std::vector<Number>& known = Known<Number>();
  known.resize(1);
  for (uint32_t row = 0; good && row < count; ++row) {
    std::array<uint32_t, 3> key{};
    for (size_t i = 0; i < kColumns; ++i) key.at(i) = columns_.at(i)[row];
    for (size_t i = 0; good && i < kNames; ++i) {
      good = key.at(i) - 1 < names_.size();  // 0 is beyond the end
      if (good) key.at(i) = names_[key.at(i) - 1];
    }
    if (!good) break;
    const uint32_t number =
        NumberOf({key[0], key[1], key[2]}, key.at(kNames - 1), numbers,
                 [&](const Key& of_row) { return make(of_row).value_or(Number{kUnknown}).value; });
    good = number != kUnknown;
    known.push_back({number});
  }
  if (good) return absl::OkStatus();
  return InvalidError("the store is damaged: the keys of a slice are not as they must be");
}

absl::Status NamedReader::ReadAllKeys(PlaneReader& in) {
  constexpr auto kLastKind = static_cast<uint32_t>(correlate::ContextKind::kUnsampledSwitch);
  constexpr auto kLastMode = static_cast<uint32_t>(Mode::kXen);
  const auto vcpu = [&](const Key& key) -> std::optional<VcpuNumber> {
    return dictionary_.vcpus.Intern({TextOf(key.a), key.b});
  };
  const auto context = [&](const Key& key) -> std::optional<ContextNumber> {
    if (key.b > kLastKind || key.c > 1) return std::nullopt;
    return dictionary_.contexts.Intern(
        {static_cast<correlate::ContextKind>(key.b), TextOf(key.a), key.c != 0});
  };
  const auto code = [&](const Key& key) -> std::optional<CodeNumber> {
    if (key.c > kLastMode) return std::nullopt;
    return dictionary_.codes.Intern({static_cast<Mode>(key.c), TextOf(key.a), TextOf(key.b)});
  };
  XENOSCOPE_RETURN_IF_ERROR((ReadKeys<VcpuNumber, 1, 2>(in, vcpus_, vcpu)));
  XENOSCOPE_RETURN_IF_ERROR((ReadKeys<ContextNumber, 1, 3>(in, contexts_, context)));
  return ReadKeys<CodeNumber, 2, 3>(in, codes_, code);
}

absl::Status NamedReader::Read(std::string_view names, PlaneReader& packed,
                               const WantedSums& wanted, SliceSums& sums) {
  XENOSCOPE_RETURN_IF_ERROR(SetNames(names));
  XENOSCOPE_RETURN_IF_ERROR(ReadAllKeys(packed));
  return unpacker_.Read(packed, *this, wanted, sums);
}

absl::Status NamedReader::Read(std::string_view names, Bytes packed, const WantedSums& wanted,
                               SliceSums& sums) {
  XENOSCOPE_RETURN_IF_ERROR(planes_.Open(packed));
  return Read(names, planes_, wanted, sums);
}

absl::Status NamedReader::Read(EntryId id, std::string& name) {
  if (id - 1 >= names_.size()) return NoSuchKey("name", id);
  name = TextOf(names_[id - 1]);
  return absl::OkStatus();
}

// Known has all keys of the slice.
absl::Status NamedReader::Find(EntryId id, VcpuNumber& /*vcpu*/) { return NoSuchKey("vCPU", id); }
absl::Status NamedReader::Find(EntryId id, ContextNumber& /*context*/) {
  return NoSuchKey("context", id);
}
absl::Status NamedReader::Find(EntryId id, CodeNumber& /*code*/) { return NoSuchKey("code", id); }

}  // namespace xenoscope::store
