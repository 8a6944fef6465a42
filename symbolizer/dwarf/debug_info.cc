#include "symbolizer/dwarf/debug_info.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/parallel.h"
#include "symbolizer/demangle.h"
#include "symbolizer/disjoint_ranges.h"
#include "symbolizer/dwarf/dwarf_companions.h"
#include "symbolizer/dwarf/dwarf_file.h"
#include "symbolizer/dwarf/dwarf_lines.h"
#include "symbolizer/dwarf/dwarf_scopes.h"
#include "symbolizer/dwarf/dwarf_sections.h"
#include "symbolizer/dwarf/dwarf_unit.h"
#include "symbolizer/elf/elf_file.h"
#include "symbolizer/work_limit.h"

namespace xenoscope::symbolizer {
namespace {

// Limit of steps for any file, in addition to those for its size.
constexpr uint64_t kBaseSteps = 1'000'000;

// Least number of items for which a thread is worth its start of about 50 us.
constexpr size_t kTablesPerThread = 64;
constexpr size_t kUnitsPerThread = 8;

}  // namespace

class DebugInfo::Reader {
 public:
  static absl::StatusOr<std::unique_ptr<Reader>> Open(std::shared_ptr<const FileContent> file,
                                                      const FileFinder& finder,
                                                      std::vector<std::string> paths) {
    XENOSCOPE_ASSIGN_OR_RETURN(const ElfFile elf, ElfFile::OpenAny(file->bytes()));
    XENOSCOPE_ASSIGN_OR_RETURN(DwarfSections sections, DwarfSections::Read(elf, file->bytes()));
    auto reader =
        std::make_unique<Reader>(std::move(file), sections.size(), finder, std::move(paths));
    const DwarfFile* shared = reader->companions_.FindShared(elf, reader->limit_);
    reader->whole_ = std::make_unique<DwarfFile>(std::move(sections), shared, reader->limit_);
    reader->ReadWhereUnitsAre();
    return reader;
  }

  Reader(std::shared_ptr<const FileContent> file, uint64_t size, const FileFinder& finder,
         std::vector<std::string> paths)
      : file_(std::move(file)),
        limit_(kBaseSteps + kStepsPerByte * size),
        companions_(finder, std::move(paths)) {}
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() = default;

  void FramesAt(Address address, std::vector<CodeFrame>& frames) {
    frames.clear();
    const uint32_t number = unit_ranges_.Find(address);
    if (number == DisjointRanges::kNoOwner) return;
    Unit& unit = units_[number];
    if (!unit.read) Read(unit);
    const DwarfLines::Row row = unit.lines.Find(address);
    CodeFrame frame = {{}, Path(unit, row.file), row.line};
    uint32_t scope = unit.ranges.Find(address);
    if (scope == DisjointRanges::kNoOwner) {
      if (!frame.file.empty()) frames.push_back(frame);
      return;
    }
    while (scope != DwarfScope::kNone && frames.size() < kMaxFrames) {
      const DwarfScope& known = unit.scopes[scope];
      frame.function = Name(unit, scope);
      frames.push_back(frame);
      frame = {{}, Path(unit, known.call_file), known.call_line};
      scope = known.parent;
    }
  }

  void ReadUnitsOf(std::span<const Address> addresses) {
    std::vector<uint32_t> wanted;
    for (const Address address : addresses) {
      const uint32_t number = unit_ranges_.Find(address);
      if (number == DisjointRanges::kNoOwner || units_[number].read) continue;
      units_[number].read = true;  // so that it is added only once
      wanted.push_back(number);
    }
    ForEachInParallel(wanted.size(), kUnitsPerThread, [&](size_t i) { Read(units_[wanted[i]]); });
  }

  // Returns a table of all ranges of addresses with the same frames; for units that were not read
  // it has what `before` has.
  std::string TableOfRead(const FrameTable& before) {
    FrameTableWriter table;
    std::vector<CodeFrame> frames;
    std::vector<UnitInTable> written(units_.size());
    unit_ranges_.ForEach([&](Address begin, Address end, uint32_t number) {
      if (begin == 0) return;
      if (number == DisjointRanges::kNoOwner) {
        table.Add(begin, FrameTable::kNoFrame);
      } else if (units_[number].read) {
        AddTo(table, units_[number], written[number], begin, end);
      } else if (before.Knows(begin)) {
        for (const Address start : before.StartsIn(begin, end)) {
          if (before.Find(start, frames)) {
            table.Add(start, frames);
          } else {
            table.Add(start, FrameTable::kUnread);
          }
        }
      } else {
        table.Add(begin, FrameTable::kUnread);
      }
    });
    return std::move(table).Finish();
  }

  bool has_read() const { return has_read_; }
  const DwarfCompanions& companions() const { return companions_; }
  bool gave_up() const { return limit_.exhausted(); }

  uint64_t MemoryUsed() const {
    uint64_t used =
        whole_->MemoryUsed() + unit_ranges_.MemoryUsed() + units_.capacity() * sizeof(Unit);
    for (const Unit& unit : units_) {
      if (unit.split) used += unit.split->file.MemoryUsed();
      used += unit.scopes.capacity() * sizeof(DwarfScope) + unit.ranges.MemoryUsed() +
              unit.lines.MemoryUsed() +
              (unit.names.capacity() + unit.paths.capacity()) * sizeof(std::string_view);
    }
    for (const std::string& text : texts_) used += sizeof(std::string) + text.capacity();
    return used;
  }

 private:
  struct Unit {
    const DwarfUnit* dwarf = nullptr;  // unit of whole_
    std::unique_ptr<DwarfCompanions::SplitUnit> split;
    bool read = false;
    std::vector<DwarfScope> scopes;
    DisjointRanges ranges;  // ranges, owned by scopes
    DwarfLines lines;
    // Names of scopes, and of files of lines, once they were looked up; null before that.
    std::vector<std::string_view> names;
    std::vector<std::string_view> paths;
  };

  void ReadWhereUnitsAre() {
    std::vector<DwarfUnit>& headers = whole_->units();
    units_.resize(headers.size());
    std::vector<std::vector<AddressRange>> ranges(units_.size());
    ForEachInParallel(units_.size(), kTablesPerThread, [&](size_t i) {
      DwarfUnit& unit = headers[i];
      units_[i].dwarf = &unit;
      DwarfExtent extent;
      const DwarfReader& reader = whole_->reader();
      reader.ReadRoot(unit, limit_, extent);
      if (!unit.is_code) return;
      reader.AddRanges(unit, extent, limit_, ranges[i]);
      // A unit without an extent of its own has that of its functions.
      if (ranges[i].empty()) {
        for (const OwnedRange& range : ReadScopes(reader, unit, limit_).extents) {
          ranges[i].push_back({range.begin, range.end});
        }
      }
    });
    std::vector<OwnedRange> owned;
    for (size_t i = 0; i < units_.size(); ++i) {
      for (const AddressRange& range : ranges[i]) {
        owned.push_back({range.begin, range.end, static_cast<uint32_t>(i)});
      }
    }
    unit_ranges_ = MakeDisjoint(std::move(owned));
  }

  // The parts of a unit that are already in the table.
  struct UnitInTable {
    std::vector<FrameTableWriter::Text> names;  // names of scopes
    std::vector<FrameTableWriter::Text> paths;
    std::vector<uint32_t> outer;  // by scope: the frame that it is inlined into
  };

  UnitInTable Begin(FrameTableWriter& table, Unit& unit) {
    UnitInTable written;
    for (uint32_t file = 0; file < unit.paths.size(); ++file) {
      written.paths.push_back(table.Keep(Path(unit, file)));
    }
    for (uint32_t scope = 0; scope < unit.scopes.size(); ++scope) {
      const DwarfScope& known = unit.scopes[scope];
      written.names.push_back(table.Keep(Name(unit, scope)));
      // Parents come before scopes that are inlined into them.
      const bool inlined = known.parent != DwarfScope::kNone;
      written.outer.push_back(inlined ? table.Frame(written.names[known.parent],
                                                    PathIn(written, known.call_file),
                                                    known.call_line, written.outer[known.parent])
                                      : FrameTable::kNoFrame);
    }
    return written;
  }

  static FrameTableWriter::Text PathIn(const UnitInTable& written, uint32_t file) {
    return file < written.paths.size() ? written.paths[file] : FrameTableWriter::Text();
  }

  // Writes the frames of [begin, end), which belongs to this unit.
  void AddTo(FrameTableWriter& table, Unit& unit, UnitInTable& written, Address begin,
             Address end) {
    if (written.names.empty() && written.paths.empty()) written = Begin(table, unit);
    std::vector<Address> starts = {begin};
    unit.ranges.AppendStartsIn(begin, end, starts);
    unit.lines.AppendStartsIn(begin, end, starts);
    std::sort(starts.begin(), starts.end());
    for (const Address start : starts) {
      const DwarfLines::Row row = unit.lines.Find(start);
      const uint32_t scope = unit.ranges.Find(start);
      const FrameTableWriter::Text path = PathIn(written, row.file);
      if (scope != DisjointRanges::kNoOwner) {
        table.Add(start, table.Frame(written.names[scope], path, row.line, written.outer[scope]));
      } else if (path.size > 0) {
        table.Add(start, table.Frame({}, path, row.line));
      } else {
        table.Add(start, FrameTable::kNoFrame);
      }
    }
  }

  // Reads a unit. Changes nothing else, so that several threads can read units.
  void Read(Unit& unit) {
    unit.read = true;
    has_read_ = true;
    unit.split = companions_.FindSplit(*unit.dwarf, whole_->sections(), limit_);
    DwarfScopes scopes = unit.split
                             ? ReadScopes(unit.split->file.reader(), *unit.split->unit, limit_)
                             : ReadScopes(whole_->reader(), *unit.dwarf, limit_);
    unit.scopes = std::move(scopes.scopes);
    unit.ranges = MakeDisjoint(std::move(scopes.extents));
    unit.lines = DwarfLines::Read(whole_->reader(), *unit.dwarf, limit_);
    unit.names.resize(unit.scopes.size());
    unit.paths.resize(unit.lines.files());
  }

  std::string_view Name(Unit& unit, uint32_t scope) {
    std::string_view& name = unit.names[scope];
    if (name.data() == nullptr) {
      const DwarfFile& file = unit.split ? unit.split->file : *whole_;
      const std::string_view mangled = file.NameOfEntry(unit.scopes[scope].entry, limit_);
      name = mangled.starts_with("_") ? Keep(Demangled(mangled)) : mangled;
      if (name.empty()) name = "?";
    }
    return name;
  }

  std::string_view Path(Unit& unit, uint32_t file) {
    if (file >= unit.paths.size()) return {};
    std::string_view& path = unit.paths[file];
    if (path.data() == nullptr) path = Keep(unit.lines.PathOf(file));
    return path;
  }

  std::string_view Keep(std::string text) { return texts_.emplace_back(std::move(text)); }

  std::shared_ptr<const FileContent> file_;  // file with the sections
  WorkLimit limit_;
  DwarfCompanions companions_;
  std::unique_ptr<DwarfFile> whole_;
  std::vector<Unit> units_;
  DisjointRanges unit_ranges_;  // ranges, owned by indices in units_
  std::deque<std::string> texts_;
  std::atomic<bool> has_read_ = false;
};

DebugInfo::DebugInfo(std::shared_ptr<const FileContent> file, FileFinder finder,
                     std::vector<std::string> paths, std::shared_ptr<const IndexCache> cache)
    : file_(std::move(file)),
      finder_(std::move(finder)),
      paths_(std::move(paths)),
      cache_(std::move(cache)) {}

DebugInfo::~DebugInfo() { StoreInCache(); }

absl::StatusOr<std::unique_ptr<DebugInfo>> DebugInfo::Open(
    std::shared_ptr<const FileContent> file, const FileFinder& finder,
    std::vector<std::string> paths, std::shared_ptr<const IndexCache> cache) {
  // NOLINTNEXTLINE(cppcoreguidelines-owning-memory): the constructor is private
  std::unique_ptr<DebugInfo> opened(
      new DebugInfo(std::move(file), finder, std::move(paths), std::move(cache)));
  opened->FindInCache();
  if (!opened->cached_file_.bytes().empty()) return opened;
  XENOSCOPE_RETURN_IF_ERROR(opened->OpenReader());
  return opened;
}

absl::Status DebugInfo::OpenReader() {
  tried_to_read_ = true;
  XENOSCOPE_ASSIGN_OR_RETURN(reader_, Reader::Open(file_, finder_, paths_));
  return absl::OkStatus();
}

DebugInfo::Reader* DebugInfo::OpenedReader() {
  if (!tried_to_read_) OpenReader().IgnoreError();
  return reader_.get();
}

void DebugInfo::FindInCache() {
  if (cache_ == nullptr || file_->identity() == FileIdentity()) return;
  const auto elf = ElfFile::OpenAny(file_->bytes());
  if (!elf.ok()) return;
  build_id_ = elf->BuildId();
  auto found = cache_->Find(build_id_, file_->identity());
  if (!found) return;
  auto table = FrameTable::Open(found->bytes());
  if (!table.ok()) return;  // a new table is made
  cached_file_ = *std::move(found);
  cached_ = *table;
}

void DebugInfo::StoreInCache() {
  if (cache_ == nullptr || reader_ == nullptr || !reader_->has_read()) return;
  if (file_->identity() == FileIdentity()) return;
  if (reader_->gave_up() || !reader_->companions().Missing().empty()) return;
  cache_->Store(build_id_, file_->identity(), reader_->TableOfRead(cached_));
}

std::vector<CodeFrame> DebugInfo::FramesAt(Address address) {
  std::vector<CodeFrame> frames;
  FramesAt(address, frames);
  return frames;
}

void DebugInfo::FramesAt(Address address, std::vector<CodeFrame>& frames) {
  if (cached_.Find(address, frames)) return;
  if (Reader* reader = OpenedReader()) reader->FramesAt(address, frames);
}

void DebugInfo::ReadUnitsOf(std::span<const Address> addresses) {
  std::vector<Address> unknown;
  for (const Address address : addresses) {
    if (!cached_.Knows(address)) unknown.push_back(address);
  }
  if (unknown.empty()) return;
  if (Reader* reader = OpenedReader()) reader->ReadUnitsOf(unknown);
}

std::vector<CompanionFile> DebugInfo::Companions() const {
  return reader_ == nullptr ? std::vector<CompanionFile>() : reader_->companions().Used();
}

std::vector<std::string> DebugInfo::Missing() const {
  return reader_ == nullptr ? std::vector<std::string>() : reader_->companions().Missing();
}

bool DebugInfo::gave_up() const { return reader_ != nullptr && reader_->gave_up(); }

uint64_t DebugInfo::MemoryUsed() const { return reader_ == nullptr ? 0 : reader_->MemoryUsed(); }

}  // namespace xenoscope::symbolizer
