// Corrupted copies of real traces by the thousand, each through everything that reads a trace: no
// crash, no hang, no error of ours; every byte in one item; what must be noticed is announced.
// For longer campaigns: $XENOSCOPE_CORRUPTED_SEEDS, the copies of a trace and a way to corrupt it,
// and $XENOSCOPE_CORRUPTED_PIECES, a directory of other traces (some 10 kB each, as time is
// linear).
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "analysis/analyse_trace.h"
#include "analysis/record_pipeline.h"
#include "analysis/scatter/scatter_registry.h"
#include "analysis/series/series_pass.h"
#include "analysis/series/series_registry.h"
#include "analysis/summary/registry.h"
#include "analysis/trace_pass.h"
#include "report/dump/dump.h"
#include "report/dump/dump_exits.h"
#include "report/summary/summary_view.h"
#include "trace/trace_file.h"
#include "trace/windows.h"

namespace xenoscope {
namespace {

using Copy = std::vector<std::byte>;
using Random = std::mt19937_64;

uint64_t Below(Random& random, uint64_t limit) { return random() % std::max<uint64_t>(limit, 1); }

// ---- ways to corrupt

void FlipBits(Copy& copy, Random& random) {
  for (uint64_t i = 0, count = 1 + Below(random, 8); i < count; ++i) {
    copy[Below(random, copy.size())] ^= std::byte{1} << Below(random, 8);
  }
}

void DropRange(Copy& copy, Random& random) {
  const auto from = static_cast<int64_t>(Below(random, copy.size()));
  const auto to = std::min<int64_t>(from + 1 + static_cast<int64_t>(Below(random, 600)),
                                    static_cast<int64_t>(copy.size()));
  copy.erase(copy.begin() + from, copy.begin() + to);
}

void DoubleRange(Copy& copy, Random& random) {
  const uint64_t from = Below(random, copy.size());
  const uint64_t length = std::min<uint64_t>(1 + Below(random, 600), copy.size() - from);
  const Copy piece(copy.begin() + static_cast<int64_t>(from),
                   copy.begin() + static_cast<int64_t>(from + length));
  copy.insert(copy.begin() + static_cast<int64_t>(from), piece.begin(), piece.end());
}

void Truncate(Copy& copy, Random& random) { copy.resize(1 + Below(random, copy.size())); }

void ZeroRange(Copy& copy, Random& random) {
  const uint64_t from = Below(random, copy.size());
  const uint64_t length = std::min<uint64_t>(1 + Below(random, 5000), copy.size() - from);
  std::fill_n(copy.begin() + static_cast<int64_t>(from), length, std::byte{0});
}

void FillWithNoise(Copy& copy, Random& random) {
  const uint64_t from = Below(random, copy.size());
  const uint64_t length = std::min<uint64_t>(1 + Below(random, 300), copy.size() - from);
  for (uint64_t i = from; i < from + length; ++i) copy[i] = static_cast<std::byte>(random());
}

// A header of a window says another pCPU or length.
void LieInAHeader(Copy& copy, Random& random) {
  std::vector<size_t> headers;
  for (size_t at = 0; at + 12 <= copy.size(); at += 4) {
    uint32_t word = 0;
    std::memcpy(&word, &copy[at], 4);
    if (word == trace::kWindowHeaderWord) headers.push_back(at);
  }
  if (headers.empty()) return;
  const size_t at = headers[Below(random, headers.size())] + 4 + 4 * Below(random, 2);
  const uint32_t lies[] = {0, 1, 300, 16383, 16384, 0xffffffff, static_cast<uint32_t>(random())};
  std::memcpy(&copy[at], &lies[Below(random, std::size(lies))], 4);
}

// Flips one bit of some record's TSC, of the 64 from `lowest` up.
void FlipATscFrom(uint64_t lowest, Copy& copy, Random& random) {
  std::vector<uint64_t> records;
  const auto file = trace::TraceFile::FromBytes(copy, "copy");
  if (!file.ok()) return;
  trace::OrderedStream stream = file->Stream();
  while (const trace::Item* item = stream.Next()) {
    if (item->kind == trace::ItemKind::kRecord && item->record.has_tsc) {
      records.push_back(item->record.offset);
    }
  }
  if (records.empty()) return;
  const uint64_t bit = lowest + Below(random, 64 - lowest);
  copy[records[Below(random, records.size())] + 4 + bit / 8] ^= std::byte{1} << bit % 8;
}

void FlipATsc(Copy& copy, Random& random) { FlipATscFrom(0, copy, random); }

using Corrupt = void (*)(Copy&, Random&);
constexpr Corrupt kWays[] = {FlipBits,  DropRange,     DoubleRange,  Truncate,
                             ZeroRange, FillWithNoise, LieInAHeader, FlipATsc};

// ---- everything that reads a trace

// Text stands for a failure; empty: all is well.
std::string Complaint(const absl::Status& status, std::string_view what) {
  // What cannot be shown is refused; nothing else may go wrong.
  if (status.ok() || absl::IsInvalidArgument(status)) return "";
  return fmt::format("{}: {}", what, status.ToString());
}

std::string TryStream(const trace::TraceFile& file) {
  uint64_t accounted = file.index().header_bytes;
  Tsc last;
  trace::OrderedStream stream = file.Stream();
  while (const trace::Item* item = stream.Next()) {
    if (item->record.tsc < last) return fmt::format("time goes back at {}", item->record.offset);
    last = item->record.tsc;
    if (item->kind == trace::ItemKind::kDamaged) accounted += item->damage.bytes;
    if (item->kind <= trace::ItemKind::kWrap || item->kind == trace::ItemKind::kLost) {
      accounted += item->record.SizeBytes();
    }
  }
  if (accounted == file.bytes().size()) return "";
  return fmt::format("{} bytes of {} are accounted for", accounted, file.bytes().size());
}

std::string TrySummary(const trace::TraceFile& file) {
  const auto result = analysis::AnalyseTrace(file, {}, analysis::AllAnalyses, 1);
  if (!result.ok()) return Complaint(result.status(), "summary");
  const auto names = [](DomainId) { return std::string(); };
  (void)report::SummaryText(*result, names, {{}, true});
  (void)report::SummaryCsv(result->document);
  (void)report::SummaryJson(*result, names);
  return "";
}

// Divided in two, the same, whatever the second part was warmed up by.
std::string TryDivided(const trace::TraceFile& file) {
  const auto whole = analysis::AnalyseTrace(file, {}, analysis::AllAnalyses, 1);
  if (!whole.ok()) return Complaint(whole.status(), "summary");
  const TscRange range = whole->metadata.range;
  const Tsc middle = range.begin + range.Length() / 2 + 1;
  for (const auto warm_up :
       {std::optional<Tsc>(), std::optional(range.begin + range.Length() / 4)}) {
    const auto divided = analysis::AnalyseDivision(file, {}, analysis::AllAnalyses,
                                                   analysis::PartitionAtEach({{middle, warm_up}}));
    if (!divided.ok()) return Complaint(divided.status(), "divided summary");
    if (!(divided->document == whole->document)) return "divided, the summary is another";
    if (divided->trace.unread.damages != whole->trace.unread.damages)
      return "divided, other damages";
  }
  return "";
}

std::string TryDump(const trace::TraceFile& file) {
  report::DumpOptions options;
  const report::DumpSink sink = [](std::string_view) -> absl::StatusOr<bool> { return true; };
  const auto records = report::Dump(file, options, sink);
  if (!records.ok()) return Complaint(records.status(), "dump");
  return Complaint(report::DumpExits(file, options, sink).status(), "dump of exits");
}

std::string TrySeries(const trace::TraceFile& file) {
  std::vector<const analysis::SeriesInfo*> infos;
  infos.reserve(analysis::kAllSeries.size());
  for (const auto& info : analysis::kAllSeries) infos.push_back(&info);
  const auto length = [](const analysis::TraceMetadata& metadata) {
    return metadata.range.Length() / 20 + 1;
  };
  auto totals = analysis::ComputeSeriesTotals(file, {}, {.series = infos, .length = length});
  if (!totals.ok()) return Complaint(totals.status(), "series");
  const auto ignore = [](const analysis::IntervalRow&) { return absl::OkStatus(); };
  const absl::Status kept = analysis::ForEachSeriesRow(file, *totals, ignore);
  totals->are_kept = false;
  const absl::Status second = analysis::ForEachSeriesRow(file, *totals, ignore);
  return Complaint(kept, "series") + Complaint(second, "series of a second pass");
}

std::string TryScatters(const trace::TraceFile& file) {
  class Sink : public analysis::PointSink {
    void OnPoint(uint64_t /*line*/, Tsc /*x*/, uint64_t /*y*/) override {}
  } sink;
  std::vector<std::unique_ptr<analysis::Scatter>> scatters;
  for (const auto& info : analysis::kAllScatters) {
    auto scatter = info.make({{}, info.needs_parameter ? std::optional(0xf0U) : std::nullopt});
    scatter->SetSink(sink);
    scatters.push_back(std::move(scatter));
  }
  return Complaint(analysis::PassOverTrace(file, {}, analysis::SubscribersOf(scatters)).status(),
                   "scatters");
}

std::string TryEverything(const Copy& copy) {
  const auto file = trace::TraceFile::FromBytes(copy, "copy");
  if (!file.ok()) return Complaint(file.status(), "windows");
  for (const auto& attempt : {TryStream, TrySummary, TryDivided, TryDump, TrySeries, TryScatters}) {
    std::string complaint = attempt(*file);
    if (!complaint.empty()) return complaint;
  }
  return "";
}

// ---- the traces

struct Original {
  std::string name;
  Copy bytes;
};

std::vector<Original> Originals() {
  std::vector<Original> originals;
  const char* const elsewhere = std::getenv("XENOSCOPE_CORRUPTED_PIECES");
  const std::filesystem::path pieces = elsewhere != nullptr ? elsewhere : XENOSCOPE_TRACE_PIECES;
  for (const auto& entry : std::filesystem::directory_iterator(pieces)) {
    std::ifstream file(entry.path(), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(file), {}};
    const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
    originals.push_back({entry.path().filename(), Copy(begin, begin + bytes.size())});
  }
  std::sort(originals.begin(), originals.end(),
            [](const Original& a, const Original& b) { return a.name < b.name; });
  return originals;
}

TEST(CorruptedCopies, AreReadWholeOrRefused) {
  const char* const wanted = std::getenv("XENOSCOPE_CORRUPTED_SEEDS");
  const uint64_t seeds = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 100;
  for (const Original& original : Originals()) {
    for (size_t way = 0; way < std::size(kWays); ++way) {
      for (uint64_t seed = 0; seed < seeds; ++seed) {
        Random random(seed * std::size(kWays) + way);
        Copy copy = original.bytes;
        // Every fourth copy is corrupted several times over.
        for (uint64_t i = 0; i < (seed % 4 == 0 ? 4 : 1) && !copy.empty(); ++i) {
          kWays[way](copy, random);
        }
        if (copy.empty()) continue;
        const std::string complaint = TryEverything(copy);
        EXPECT_EQ(complaint, "") << original.name << ", way " << way << ", seed " << seed;
      }
    }
  }
}

// ---- what must be noticed

uint32_t WordAt(const Copy& copy, size_t at) {
  uint32_t word = 0;
  std::memcpy(&word, &copy[at], 4);
  return word;
}

// Inside the first window.
size_t Inside(const Copy& copy, Random& random) {
  return trace::kWindowHeaderBytes + Below(random, WordAt(copy, 8) - 1);
}

void CutInsideAWindow(Copy& copy, Random& random) { copy.resize(Inside(copy, random) + 1); }

void DropInsideAWindow(Copy& copy, Random& random) {
  const auto from = static_cast<int64_t>(Inside(copy, random));
  copy.erase(copy.begin() + from, copy.begin() + from + 1 + static_cast<int64_t>(random() % 40));
}

void ZeroARecord(Copy& copy, Random& random) {
  const size_t from = trace::kWindowHeaderBytes + Below(random, WordAt(copy, 8) - 88);
  std::fill_n(copy.begin() + static_cast<int64_t>(from), 84, std::byte{0});
}

void FlipAHighBitOfATsc(Copy& copy, Random& random) { FlipATscFrom(42, copy, random); }

void LieAboutALength(Copy& copy, Random& random) {
  const uint32_t lie = WordAt(copy, 8) + 1 + static_cast<uint32_t>(Below(random, 0x7fffffff));
  std::memcpy(&copy[8], &lie, 4);
}

struct Noticed {
  const char* name;
  Corrupt corrupt;
};
constexpr Noticed kNoticed[] = {{"a file that ends inside a window", CutInsideAWindow},
                                {"bytes missing inside a window", DropInsideAWindow},
                                {"a record of zeros", ZeroARecord},
                                {"a high bit of a TSC", FlipAHighBitOfATsc},
                                {"a window longer than it is", LieAboutALength}};

TEST(CorruptedCopies, AnnounceWhatCannotBeRight) {
  for (const Original& original : Originals()) {
    for (const Noticed& noticed : kNoticed) {
      for (uint64_t seed = 0; seed < 50; ++seed) {
        Random random(seed);
        Copy copy = original.bytes;
        noticed.corrupt(copy, random);
        const auto file = trace::TraceFile::FromBytes(copy, "copy");
        ASSERT_TRUE(file.ok()) << file.status();
        const auto result = analysis::AnalyseTrace(*file, {}, analysis::AllAnalyses, 1);
        ASSERT_TRUE(result.ok()) << result.status();
        EXPECT_GT(result->trace.unread.damages, 0U)
            << original.name << ", " << noticed.name << ", seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace xenoscope
