#include "store/clickhouse/sum_columns.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "store/bounded_text.h"

namespace xenoscope::store {
namespace {

using correlate::ContextKind;

constexpr int8_t kAllContextsCode = 127;
constexpr auto kLastKind = static_cast<int8_t>(ContextKind::kUnsampledSwitch);
constexpr double kMaxCount = 0x1p53;

struct Column {
  std::string_view name;
  std::string_view type;
};

// What a slice's head says, which all rows repeat: a question needs no join.
constexpr std::array kHeadColumns = {
    Column{"event", "String"},  Column{"host", "String"},           Column{"begin_ns", "Int64"},
    Column{"end_ns", "Int64"},  Column{"clock_error_ns", "UInt64"}, Column{"clock_hz", "UInt64"},
    Column{"is_time", "UInt8"}, Column{"traced", "UInt8"},          Column{"period", "Float64"},
    Column{"push", "UInt64"}};

// Of the kind 'slice': Slice::count and gaps_ns. Of the kinds 'piece' and 'replaced': Piece.
constexpr std::array kJoinColumns = {
    Column{"slices", "UInt64"}, Column{"gaps_ns", "Int64"}, Column{"replaced", "UInt64"},
    Column{"piece_begin_ns", "Int64"}, Column{"piece_end_ns", "Int64"}};

// By ContextKind; SQL has names.
constexpr std::string_view kContextType =
    "Enum8('running' = 0, 'guest' = 1, 'exit' = 2, 'resume' = 3, 'transition' = 4, 'lost' = 5, "
    "'untraced' = 6, 'switch' = 7, 'unsampled switch' = 8, 'all' = 127)";

// By TraceFigure.
constexpr std::string_view kFigureType =
    "Enum8('runstate' = 0, 'wait' = 1, 'exit' = 2, 'finding' = 3, 'hypercall' = 4)";

constexpr std::array kKeyColumns = {Column{"domain", "String"},
                                    Column{"vcpu", "UInt32"},
                                    Column{"context", kContextType},
                                    Column{"exit", "String"},
                                    Column{"both_modes", "UInt8"},
                                    Column{"context_b", kContextType},
                                    Column{"exit_b", "String"},
                                    Column{"both_modes_b", "UInt8"},
                                    Column{"mode", "Enum8('user' = 0, 'kernel' = 1, 'xen' = 2)"},
                                    Column{"image", "String"},
                                    Column{"function", "String"},
                                    Column{"columns", "UInt8"},
                                    Column{"counter", "String"},
                                    Column{"figure", kFigureType},
                                    Column{"label", "String"},
                                    Column{"part", "String"},
                                    Column{"other", "String"}};

struct ContextColumns {
  int8_t context = 0;
  std::string_view exit;
  bool both_modes = false;
};

// The values of kKeyColumns.
struct KeyValues {
  std::string_view domain;
  uint32_t vcpu = 0;
  ContextColumns a;
  ContextColumns b;
  int8_t mode = 0;
  std::string_view image;
  std::string_view function;
  uint8_t columns = 0;
  std::string_view counter;
  uint8_t figure = 0;
  std::string_view label;
  std::string_view part;
  std::string_view other;
};

// A column of sums. Where no kind needs it exactly it has 24 significant bits, which takes half of
// the space.
struct SumColumn {
  std::string_view name;
  bool exact = false;
};

// All of them, each once: kinds share columns.
const std::vector<SumColumn>& SumColumns() {
  static const std::vector<SumColumn> columns = [] {
    std::vector<SumColumn> all;
    (void)ForEachTable([&]<typename Sums>() {
      for (size_t field = Table<Sums>::kKeys; field < Table<Sums>::kColumns.size(); ++field) {
        const std::string_view name = Table<Sums>::kColumns[field];
        auto column = std::ranges::find(all, name, &SumColumn::name);
        if (column == all.end()) column = all.insert(all.end(), {name, false});
        column->exact = column->exact || Table<Sums>::kExact;
      }
      return absl::OkStatus();
    });
    return all;
  }();
  return columns;
}

void Append(const std::vector<double>& sums, RowBinaryWriter& out) {
  for (size_t column = 0; column < sums.size(); ++column) {
    if (SumColumns()[column].exact) {
      out.Put(sums[column]);
    } else {
      out.Put(static_cast<float>(sums[column]));
    }
  }
}

// Where the sums of a kind are in SumColumns.
template <typename Sums>
const std::vector<size_t>& PlacesOf() {
  static const std::vector<size_t> places = [] {
    std::vector<size_t> found;
    for (size_t field = Table<Sums>::kKeys; field < Table<Sums>::kColumns.size(); ++field) {
      found.push_back(
          std::ranges::find(SumColumns(), Table<Sums>::kColumns[field], &SumColumn::name) -
          SumColumns().begin());
    }
    return found;
  }();
  return places;
}

ContextColumns ValuesOf(ContextNumber number, const Dictionary& dictionary) {
  if (number == kAllContexts) return {kAllContextsCode, {}, false};
  const ContextKey& key = dictionary.contexts[number];
  return {static_cast<int8_t>(key.kind), key.exit, key.has_both_modes};
}

void PutKey(VcpuNumber key, std::string_view /*name*/, const Dictionary& dictionary,
            KeyValues& values) {
  values.vcpu = key == kAllVcpus ? kAllVcpus.value : dictionary.vcpus[key].number;
  if (key != kAllVcpus) values.domain = dictionary.vcpus[key].domain;
}
void PutKey(ContextNumber key, std::string_view name, const Dictionary& dictionary,
            KeyValues& values) {
  (name == "b" ? values.b : values.a) = ValuesOf(key, dictionary);
}
void PutKey(CodeNumber key, std::string_view /*name*/, const Dictionary& dictionary,
            KeyValues& values) {
  const CodeKey& code = dictionary.codes[key];
  values.mode = static_cast<int8_t>(code.mode);
  values.image = code.image;
  values.function = code.function;
}
void PutKey(uint8_t key, std::string_view name, const Dictionary& /*dictionary*/,
            KeyValues& values) {
  (name == "figure" ? values.figure : values.columns) = key;
}
void PutKey(const std::string& key, std::string_view name, const Dictionary& /*dictionary*/,
            KeyValues& values) {
  if (name == "label") {
    values.label = key;
  } else if (name == "part") {
    values.part = key;
  } else if (name == "other") {
    values.other = key;
  } else {
    values.counter = key;
  }
}

void Append(const SliceHead& head, int8_t kind, uint64_t push, RowBinaryWriter& out) {
  out.Put(kind);
  out.Put(head.event);
  out.Put(head.host);
  out.Put(head.begin_ns);
  out.Put(head.end_ns);
  out.Put(head.clock_error_ns);
  out.Put(head.clock_hz);
  out.Put(static_cast<uint8_t>(head.is_time));
  out.Put(static_cast<uint8_t>(head.traced));
  out.Put(head.period);
  out.Put(push);
}

// Appends the values of kJoinColumns.
void Append(uint64_t slices, int64_t gaps_ns, const Piece& piece, RowBinaryWriter& out) {
  out.Put(slices);
  out.Put(gaps_ns);
  out.Put(piece.replaced);
  out.Put(piece.begin_ns);
  out.Put(piece.end_ns);
}

void Append(const ContextColumns& context, RowBinaryWriter& out) {
  out.Put(context.context);
  out.Put(context.exit);
  out.Put(static_cast<uint8_t>(context.both_modes));
}

void Append(const KeyValues& keys, RowBinaryWriter& out) {
  out.Put(keys.domain);
  out.Put(keys.vcpu);
  Append(keys.a, out);
  Append(keys.b, out);
  out.Put(keys.mode);
  out.Put(keys.image);
  out.Put(keys.function);
  out.Put(keys.columns);
  out.Put(keys.counter);
  out.Put(keys.figure);
  out.Put(keys.label);
  out.Put(keys.part);
  out.Put(keys.other);
}

template <typename Sums>
void AppendRow(const Sums& row, const Dictionary& dictionary, std::vector<double>& sums,
               RowBinaryWriter& out) {
  KeyValues keys;
  Append(0, 0, {}, out);
  std::ranges::fill(sums, 0);
  ForEachColumn<Sums>([&]<size_t kField>() {
    const auto& field = std::get<kField>(Table<Sums>::Fields(row));
    if constexpr (kField < Table<Sums>::kKeys) {
      PutKey(field, Table<Sums>::kColumns[kField], dictionary, keys);
    } else {
      sums[PlacesOf<Sums>()[kField - Table<Sums>::kKeys]] = static_cast<double>(field);
    }
  });
  Append(keys, out);
  Append(sums, out);
}

constexpr int8_t kSliceKind = 0;
constexpr int8_t kPieceKind = 100;
constexpr int8_t kMarkKind = 101;

// "'slice' = 0, 'piece' = 100, 'replaced' = 101, 'stratum' = 1"
std::string Kinds() {
  std::string kinds =
      fmt::format("'slice' = {}, 'piece' = {}, 'replaced' = {}", kSliceKind, kPieceKind, kMarkKind);
  int number = 0;
  (void)ForEachTable([&]<typename Sums>() {
    kinds += fmt::format(", '{}' = {}", Table<Sums>::kName, ++number);
    return absl::OkStatus();
  });
  return kinds;
}

void AppendWithoutSums(const SliceHead& head, int8_t kind, const Piece& piece, uint64_t push,
                       RowBinaryWriter& out) {
  Append(head, kind, push, out);
  Append(0, 0, piece, out);
  Append(KeyValues(), out);
  Append(std::vector<double>(SumColumns().size()), out);
}

std::vector<std::string> AllColumns() {
  std::vector<std::string> names = {"kind"};
  for (const Column& column : kHeadColumns) names.emplace_back(column.name);
  for (const Column& column : kJoinColumns) names.emplace_back(column.name);
  for (const Column& column : kKeyColumns) names.emplace_back(column.name);
  for (const SumColumn& column : SumColumns()) names.emplace_back(column.name);
  return names;
}

}  // namespace

std::string CreateSumTable() {
  std::string columns = fmt::format("kind Enum8({})", Kinds());
  for (const Column& column : kHeadColumns) {
    columns += fmt::format(", {} {}", column.name, column.type);
  }
  for (const Column& column : kJoinColumns) {
    columns += fmt::format(", {} {}", column.name, column.type);
  }
  for (const Column& column : kKeyColumns) {
    columns += fmt::format(", {} {}", column.name, column.type);
  }
  for (const SumColumn& column : SumColumns()) {
    columns += fmt::format(", {} {}", column.name, column.exact ? "Float64" : "Float32");
  }
  // Questions are of one event and kind, of some hosts, and of a time, so they read little else.
  return fmt::format(
      "CREATE TABLE IF NOT EXISTS {} ({}) ENGINE = MergeTree PARTITION BY "
      "toDate(intDiv(begin_ns, 1000000000)) ORDER BY (event, kind, host, begin_ns)",
      kSumTable, columns);
}

std::string InsertSums() {
  return fmt::format("INSERT INTO {} ({}) FORMAT RowBinary", kSumTable,
                     fmt::join(AllColumns(), ", "));
}

void AppendSlice(const Slice& slice, const Dictionary& dictionary, uint64_t push,
                 RowBinaryWriter& out) {
  std::vector<double> sums(SumColumns().size());
  int8_t kind = kSliceKind;
  Append(slice.head, kind, push, out);
  Append(slice.count, slice.gaps_ns, {}, out);
  Append(KeyValues(), out);
  Append(sums, out);
  (void)ForEachTable([&]<typename Sums>() {
    ++kind;
    for (const Sums& row : slice.sums.*Table<Sums>::kRows) {
      Append(slice.head, kind, push, out);
      AppendRow(row, dictionary, sums, out);
    }
    return absl::OkStatus();
  });
}

void AppendPiece(const SliceHead& joined, const Piece& piece, uint64_t push, RowBinaryWriter& out) {
  AppendWithoutSums(joined, kPieceKind, piece, push, out);
}

void AppendMark(const SliceHead& joined, const Piece& piece, uint64_t push, RowBinaryWriter& out) {
  SliceHead of_no_event = joined;
  of_no_event.event.clear();
  AppendWithoutSums(of_no_event, kMarkKind, piece, push, out);
}

SliceHead ReadHead(RowBinaryReader& in) {
  SliceHead head;
  head.event = BoundedName(in.Text());
  head.host = BoundedName(in.Text());
  head.begin_ns = in.Get<int64_t>();
  head.end_ns = in.Get<int64_t>();
  head.clock_error_ns = in.Get<uint64_t>();
  head.clock_hz = in.Get<uint64_t>();
  head.is_time = in.Get<uint8_t>() != 0;
  head.traced = in.Get<uint8_t>() != 0;
  head.period = in.Get<double>();
  return head;
}

template <>
std::string ColumnsOfKey<VcpuNumber>(std::string_view /*name*/, uint8_t /*code*/,
                                     Clause /*clause*/) {
  return "domain, vcpu";
}
template <>
std::string ColumnsOfKey<ContextNumber>(std::string_view name, uint8_t /*code*/,
                                        Clause /*clause*/) {
  return name == "b" ? "context_b, exit_b, both_modes_b" : "context, exit, both_modes";
}
template <>
std::string ColumnsOfKey<CodeNumber>(std::string_view /*name*/, uint8_t code, Clause clause) {
  struct Part {
    CodeColumn column;
    std::string_view name;
    std::string_view constant;
  };
  std::vector<std::string_view> columns;
  for (const Part& part :
       {Part{kModeColumn, "mode", "toInt8(0)"}, Part{kImageColumn, "image", "''"},
        Part{kFunctionColumn, "function", "''"}}) {
    if ((code & part.column) != 0) {
      columns.push_back(part.name);
    } else if (clause == Clause::kSelect) {
      columns.push_back(part.constant);
    }
  }
  return fmt::format("{}", fmt::join(columns, ", "));
}
template <>
std::string ColumnsOfKey<uint8_t>(std::string_view name, uint8_t /*code*/, Clause /*clause*/) {
  return std::string(name);
}
template <>
std::string ColumnsOfKey<std::string>(std::string_view name, uint8_t /*code*/, Clause /*clause*/) {
  return std::string(name == "name" ? "counter" : name);
}

void ReadKey(RowBinaryReader& in, Dictionary& dictionary, VcpuNumber& key) {
  const std::string domain = BoundedName(in.Text());
  const auto vcpu = in.Get<uint32_t>();
  key = vcpu == kAllVcpus.value ? kAllVcpus : dictionary.vcpus.Intern({domain, vcpu});
}

void ReadKey(RowBinaryReader& in, Dictionary& dictionary, ContextNumber& key) {
  const auto kind = in.Get<int8_t>();
  const std::string exit = BoundedName(in.Text());
  const bool both_modes = in.Get<uint8_t>() != 0;
  key = kAllContexts;
  if (kind == kAllContextsCode) return;
  if (kind < 0 || kind > kLastKind) return in.Fail();
  key = dictionary.contexts.Intern({static_cast<ContextKind>(kind), exit, both_modes});
}

void ReadKey(RowBinaryReader& in, Dictionary& dictionary, CodeNumber& key) {
  const auto mode = in.Get<int8_t>();
  const std::string image = BoundedName(in.Text());
  const std::string function = BoundedName(in.Text());
  if (mode < 0 || mode > static_cast<int8_t>(Mode::kXen)) return in.Fail();
  key = dictionary.codes.Intern({static_cast<Mode>(mode), image, function});
}

void ReadKey(RowBinaryReader& in, Dictionary& /*dictionary*/, uint8_t& key) {
  key = in.Get<uint8_t>();
}

void ReadKey(RowBinaryReader& in, Dictionary& /*dictionary*/, std::string& key) {
  key = BoundedName(in.Text());
}

void ReadSum(RowBinaryReader& in, double& sum) { sum = in.Get<double>(); }

void ReadSum(RowBinaryReader& in, uint64_t& sum) {
  const auto value = in.Get<double>();
  if (!(value >= 0 && value <= kMaxCount)) return in.Fail();
  sum = static_cast<uint64_t>(value);
}

}  // namespace xenoscope::store
