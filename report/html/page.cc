#include "report/html/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/json_text.h"
#include "report/html/packed.h"
#include "report/html/web_page.h"
#include "report/profile/check_notes.h"
#include "report/profile/column_help.h"
#include "report/table/table_json.h"

namespace xenoscope::report {
namespace {

using correlate::Dimension;
using correlate::ProfileRow;
using nlohmann::ordered_json;

constexpr std::string_view kPlace = "@@XENOSCOPE_DATA@@";

// Whether the byte can be in a text that ends an HTML element or begins one.
bool IsMarkup(char c) { return c == '<' || c == '>' || c == '&'; }

// Escapes JSON so that no text in it can end the HTML element around it or begin another.
std::string ForElement(std::string_view json) {
  std::string out;
  out.reserve(json.size());
  for (;;) {
    const auto plain = static_cast<size_t>(std::ranges::find_if(json, IsMarkup) - json.begin());
    out += json.substr(0, plain);
    if (plain == json.size()) return out;
    out += fmt::format("\\u00{:02x}", json[plain]);
    json.remove_prefix(plain + 1);
  }
}

// Whether the text is long and what Packed returns, which is the same in JSON and in HTML.
bool IsPacked(std::string_view text) {
  constexpr size_t kLong = 1024;
  constexpr auto kAlphabet = [] {
    std::array<bool, 256> is_in{};
    for (const char c : std::string_view("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                                         "0123456789+/= ")) {
      is_in[static_cast<uint8_t>(c)] = true;
    }
    return is_in;
  }();
  return text.size() >= kLong &&
         std::ranges::all_of(text, [&](char c) { return kAlphabet[static_cast<uint8_t>(c)]; });
}

// The data as JSON for an element, in pieces. What is packed, which is most of it, is not copied.
class ElementText {
 public:
  // `data` outlives this.
  explicit ElementText(const ordered_json& data) { Add(data); }
  // The number of bytes of all pieces.
  [[nodiscard]] size_t size() const { return size_; }
  void AppendTo(std::string& text) const {
    for (const std::string_view piece : pieces_) text += piece;
  }

 private:
  void Add(const ordered_json& data) {
    if (data.is_object()) {
      std::string_view before = "{";
      for (const auto& [key, value] : data.items()) {
        AddView(std::exchange(before, ","));
        AddOwn(ForElement(JsonText(ordered_json(key))));
        AddView(":");
        Add(value);
      }
      AddView(data.empty() ? "{}" : "}");
    } else if (data.is_string() && IsPacked(data.get_ref<const std::string&>())) {
      AddView("\"");
      AddView(data.get_ref<const std::string&>());
      AddView("\"");
    } else {
      AddOwn(ForElement(JsonText(data)));
    }
  }
  void AddView(std::string_view piece) {
    pieces_.push_back(piece);
    size_ += piece.size();
  }
  void AddOwn(std::string piece) { AddView(own_.emplace_back(std::move(piece))); }

  std::deque<std::string> own_;  // keeps its entries where they are
  std::vector<std::string_view> pieces_;
  size_t size_ = 0;
};

ordered_json PageNotes(const ProfileReport& report) {
  ordered_json notes = CheckNotes(report);
  for (std::string& note : UnresolvedNotes(report)) notes.push_back(std::move(note));
  return notes;
}

// The figures of each domain, with its share by mode. `flame` is by domain and mode.
ordered_json PageDomains(const ProfileReport& report, const correlate::ProfileResult& flame) {
  std::map<DomainId, std::map<std::string, double>> modes;
  const double whole = report.is_time ? flame.cycles : flame.samples;
  for (const ProfileRow& row : flame.rows) {
    const double part = report.is_time ? row.cycles : row.samples;
    modes[row.domain][ToString(row.mode)] += whole > 0 ? part / whole : 0;
  }
  ordered_json out = ordered_json::array();
  for (const ProfileRow& row : report.result.domains) {
    out.push_back({{"name", DomainLabel(row.domain, report.domain_name(row.domain))},
                   {"domid", row.domain.value},
                   {"samples", row.samples},
                   {"share", row.share},
                   {"low", row.interval.low},
                   {"high", row.interval.high},
                   {"cycles", row.cycles},
                   {"modes", modes[row.domain]}});
  }
  return out;
}

// Rows of the report that the page has, in bytes of JSON: hosts with hundreds of domains have tens
// of thousands of rows that nobody reads. All are in --format json.
constexpr size_t kMaxRowBytes = 1'500'000;

// Removes the rows with the smallest shares, if there are too many, and says how many they were.
void LimitRows(ordered_json& page) {
  ordered_json& rows = page["report"]["rows"];
  std::vector<size_t> largest(rows.size());
  std::iota(largest.begin(), largest.end(), size_t{0});
  std::ranges::stable_sort(largest, std::ranges::greater(),
                           [&rows](size_t i) { return rows[i]["share"].get<double>(); });
  size_t bytes = 0;
  size_t kept = 0;
  while (kept < largest.size() && bytes <= kMaxRowBytes)
    bytes += JsonText(rows[largest[kept++]]).size();
  if (kept == rows.size()) return;
  RowTotals left_out;
  for (const size_t i : std::span(largest).subspan(kept)) {
    left_out.samples += rows[i]["samples"].get<double>();
    left_out.share += rows[i]["share"].get<double>();
  }
  const size_t all = rows.size();
  largest.resize(kept);
  std::ranges::sort(largest);
  ordered_json list = ordered_json::array();
  for (const size_t i : largest) list.push_back(std::move(rows[i]));
  rows = std::move(list);
  // Last: a new key moves the values of the others.
  page["rows_left_out"] = {
      {"rows", all - kept}, {"samples", Rounded(left_out.samples)}, {"share", left_out.share}};
}

}  // namespace

absl::StatusOr<std::string> ToPage(const ordered_json& data) {
  const std::string_view page = WebPage();
  const size_t at = page.find(kPlace);
  if (at == std::string_view::npos) {
    return UnimplementedError(
        "this xenoscope cannot write HTML reports because it was built without npm; install npm "
        "and build it again, or choose another --format");
  }
  const ElementText text(data);
  std::string out;
  out.reserve(page.size() + text.size());
  out += page.substr(0, at);
  text.AppendTo(out);
  out += page.substr(at + kPlace.size());
  return out;
}

size_t MostBytes(size_t pcpus) {
  constexpr size_t kLeastBytes = 2'800'000;
  constexpr size_t kMostBytes = 9'900'000;
  constexpr size_t kBytesOfPcpu = 60'000;
  return std::min(kMostBytes, kLeastBytes + kBytesOfPcpu * pcpus);
}

size_t BytesLeft(const ordered_json& data, size_t pcpus) {
  const size_t limit = MostBytes(pcpus);
  const size_t used = WebPage().size() + ElementText(data).size();
  return limit > used + kLeastRestBytes ? limit - used : kLeastRestBytes;
}

ordered_json PageHead(const std::string& title, const std::vector<Dimension>& by) {
  ordered_json columns = ordered_json::array();
  for (const Dimension dimension : by) columns.push_back(ToString(dimension));
  ordered_json words = ordered_json::object();
  for (const TableHelp& table : AllColumnHelp()) {
    for (const ColumnHelp& column : table.columns) words[table.key][column.key] = column.about;
  }
  return {{"title", title}, {"by", std::move(columns)}, {"words", words}};
}

ordered_json PageClock(const ProfileReport& report, Tsc zero) {
  constexpr double kNanosecondsOfMillisecond = 1e6;
  const auto milliseconds = [](uint64_t ns) {
    return static_cast<double>(ns) / kNanosecondsOfMillisecond;
  };
  return {{"begin_utc_ms", milliseconds(UtcOf(report, zero).value_or(0))},
          {"error_ms", milliseconds(report.wall_clock->error_ns)}};
}

ordered_json ProfilePage(const ProfileReport& shown, const ProfileReport& of_flame,
                         const correlate::ProfileResult& flame,
                         const ProfileFormatOptions& options) {
  ordered_json page = PageHead(options.title, shown.by);
  page["seconds"] = shown.clock.Seconds(shown.sampled.Length());
  page["is_time"] = shown.is_time;
  page["report"] = ProfileJson(shown, options.selection);
  LimitRows(page);
  page["notes"] = PageNotes(shown);
  page["domains"] = PageDomains(of_flame, flame);
  return page;
}

}  // namespace xenoscope::report
