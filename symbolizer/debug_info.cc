#include "symbolizer/debug_info.h"

#include <dwarf.h>
#include <elfutils/libdw.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "symbolizer/demangle.h"
#include "symbolizer/elf_file.h"

namespace xenoscope::symbolizer {
namespace {

// Nothing of a damaged file may be read for ever: DIEs nest no deeper than this, ...
constexpr int kDeepest = 64;

// A function or a unit on one of its ranges.
struct Range {
  Address begin = 0;
  Address end = 0;
  size_t owner = 0;
};

// The ranges in order; of those that begin at one address the widest first.
void Sort(std::vector<Range>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
}

// The owner of the range that begins last among those up to `address`, if it holds it.
std::optional<size_t> OwnerOf(const std::vector<Range>& ranges, Address address) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), address,
                       [](Address a, const Range& range) { return a < range.begin; });
  if (after == ranges.begin() || address >= std::prev(after)->end) return std::nullopt;
  return std::prev(after)->owner;
}

// The number in an attribute, its own or of what it is an instance of.
std::optional<uint64_t> NumberOf(Dwarf_Die& die, unsigned attribute) {
  Dwarf_Attribute found;
  Dwarf_Word value = 0;
  if (dwarf_attr_integrate(&die, attribute, &found) == nullptr ||
      dwarf_formudata(&found, &value) != 0) {
    return std::nullopt;
  }
  return value;
}

std::string NameOf(Dwarf_Die& die) {
  for (const unsigned attribute : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name}) {
    Dwarf_Attribute found;
    if (dwarf_attr_integrate(&die, attribute, &found) == nullptr) continue;
    const char* name = dwarf_formstring(&found);
    if (name != nullptr) return Demangled(name);
  }
  return "?";
}

SourceLine LineAt(Dwarf_Die& unit, Address address) {
  Dwarf_Line* line = dwarf_getsrc_die(&unit, address);
  int number = 0;
  if (line == nullptr || dwarf_lineno(line, &number) != 0) return {};
  const char* file = dwarf_linesrc(line, nullptr, nullptr);
  return {file == nullptr ? "" : file, static_cast<uint32_t>(std::max(number, 0))};
}

// Where an inlined function was called.
SourceLine CallSite(Dwarf_Die& unit, Dwarf_Die& inlined) {
  SourceLine site;
  site.line = static_cast<uint32_t>(NumberOf(inlined, DW_AT_call_line).value_or(0));
  Dwarf_Files* files = nullptr;
  size_t count = 0;
  const auto number = NumberOf(inlined, DW_AT_call_file);
  if (number && dwarf_getsrcfiles(&unit, &files, &count) == 0 && *number < count) {
    const char* name = dwarf_filesrc(files, *number, nullptr, nullptr);
    if (name != nullptr) site.file = name;
  }
  return site;
}

bool HoldsFunctions(int tag) {
  return tag == DW_TAG_namespace || tag == DW_TAG_class_type || tag == DW_TAG_structure_type ||
         tag == DW_TAG_union_type || tag == DW_TAG_module;
}

}  // namespace

class DebugInfo::Reader {
 public:
  static absl::StatusOr<std::unique_ptr<Reader>> Open(FileContent file) {
    auto reader = std::make_unique<Reader>(std::move(file));
    XENOSCOPE_ASSIGN_OR_RETURN(reader->elf_, ElfFile::Open(reader->file_.bytes()));
    reader->dwarf_.reset(dwarf_begin_elf(reader->elf_.get(), DWARF_C_READ, nullptr));
    if (!reader->dwarf_) return NotFoundError("it has no debug information");
    reader->ReadUnits();
    return reader;
  }

  explicit Reader(FileContent file) : file_(std::move(file)) {}

  std::vector<Frame> FramesAt(Address address) {
    std::vector<Frame> frames;
    const auto number = OwnerOf(units_ranges_, address);
    if (!number) return frames;
    Unit& unit = units_[*number];
    if (!unit.read) ReadFunctions(unit);
    const auto function = OwnerOf(unit.ranges, address);
    if (!function) return frames;
    // From the function inwards, then turned round.
    std::vector<Dwarf_Die> scopes = {unit.functions[*function]};
    uint64_t steps = 0;
    AddInlined(unit.functions[*function], address, 0, steps, scopes);
    std::reverse(scopes.begin(), scopes.end());
    SourceLine line = LineAt(unit.die, address);
    for (Dwarf_Die& scope : scopes) {
      frames.push_back({NameOf(scope), std::move(line)});
      line = CallSite(unit.die, scope);
    }
    return frames;
  }

 private:
  struct DwarfCloser {
    void operator()(Dwarf* dwarf) const { dwarf_end(dwarf); }
  };
  struct Unit {
    Dwarf_Die die{};
    bool read = false;
    std::vector<Dwarf_Die> functions;
    std::vector<Range> ranges;  // of functions
  };

  // ... and no walk takes more steps than the file has bytes: each DIE, and each range, has one.
  bool MayStep(uint64_t& steps) const { return ++steps <= file_.bytes().size(); }

  void ReadUnits() {
    uint64_t steps = 0;
    Dwarf_CU* cu = nullptr;
    Dwarf_Die die;
    while (dwarf_get_units(dwarf_.get(), cu, &cu, nullptr, nullptr, &die, nullptr) == 0 &&
           MayStep(steps)) {
      if (dwarf_tag(&die) != DW_TAG_compile_unit) continue;
      const size_t before = units_ranges_.size();
      units_.push_back({die, false, {}, {}});
      AddRanges(die, units_.size() - 1, steps, units_ranges_);
      if (units_ranges_.size() > before) continue;
      // A unit that does not say where it is: its functions do.
      ReadFunctions(units_.back());
      for (const Range& range : units_.back().ranges) {
        units_ranges_.push_back({range.begin, range.end, units_.size() - 1});
      }
    }
    Sort(units_ranges_);
  }

  void AddRanges(Dwarf_Die& die, size_t owner, uint64_t& steps, std::vector<Range>& ranges) const {
    Dwarf_Addr base = 0;
    Dwarf_Addr begin = 0;
    Dwarf_Addr end = 0;
    ptrdiff_t offset = 0;
    while ((offset = dwarf_ranges(&die, offset, &base, &begin, &end)) > 0 && MayStep(steps)) {
      // The linker leaves ranges at 0 of functions that it dropped.
      if (begin != 0 && begin < end) ranges.push_back({begin, end, owner});
    }
  }

  void ReadFunctions(Unit& unit) const {
    unit.read = true;
    uint64_t steps = 0;
    AddFunctions(unit.die, 0, steps, unit);
    Sort(unit.ranges);
  }

  void AddFunctions(Dwarf_Die& parent, int depth, uint64_t& steps, Unit& unit) const {
    Dwarf_Die child;
    if (depth > kDeepest || dwarf_child(&parent, &child) != 0) return;
    do {
      const int tag = dwarf_tag(&child);
      if (tag == DW_TAG_subprogram) {
        const size_t before = unit.ranges.size();
        AddRanges(child, unit.functions.size(), steps, unit.ranges);
        if (unit.ranges.size() > before) unit.functions.push_back(child);
      } else if (HoldsFunctions(tag)) {
        AddFunctions(child, depth + 1, steps, unit);
      }
    } while (MayStep(steps) && dwarf_siblingof(&child, &child) == 0);
  }

  // Appends the inlined functions at `address` inside `scope`, outermost first.
  void AddInlined(Dwarf_Die scope, Address address, int depth, uint64_t& steps,
                  std::vector<Dwarf_Die>& inlined) const {
    Dwarf_Die child;
    if (depth > kDeepest || dwarf_child(&scope, &child) != 0) return;
    do {
      const int tag = dwarf_tag(&child);
      if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block) continue;
      if (dwarf_haspc(&child, address) <= 0) continue;
      if (tag == DW_TAG_inlined_subroutine) inlined.push_back(child);
      return AddInlined(child, address, depth + 1, steps, inlined);
    } while (MayStep(steps) && dwarf_siblingof(&child, &child) == 0);
  }

  FileContent file_;
  ElfFile elf_;
  std::unique_ptr<Dwarf, DwarfCloser> dwarf_;
  std::vector<Unit> units_;
  std::vector<Range> units_ranges_;
};

DebugInfo::DebugInfo(std::unique_ptr<Reader> reader) : reader_(std::move(reader)) {}
DebugInfo::~DebugInfo() = default;

absl::StatusOr<std::unique_ptr<DebugInfo>> DebugInfo::Open(FileContent file) {
  XENOSCOPE_ASSIGN_OR_RETURN(auto reader, Reader::Open(std::move(file)));
  return std::unique_ptr<DebugInfo>(new DebugInfo(std::move(reader)));
}

std::vector<Frame> DebugInfo::FramesAt(Address address) { return reader_->FramesAt(address); }

}  // namespace xenoscope::symbolizer
