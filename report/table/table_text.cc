#include "report/table/table_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "base/figure_text.h"
#include "report/markup.h"
#include "report/table/narrow_table.h"
#include "report/terminal_text.h"

namespace xenoscope::report {
namespace {

constexpr std::string_view kEllipsis = "…";
constexpr std::string_view kGap = "  ";
constexpr size_t kNarrowest = 12;  // the least width of a shortened column of words
// The width of words for which figures are dropped: a short path in a tree, or most functions.
constexpr size_t kEnoughForWords = 32;
// the greatest width of a column: names of domains may be very long
constexpr size_t kWidest = 500;
constexpr double kHotShare = 0.05;  // the bound for red, as in perf report

bool IsContinuation(char byte) { return (static_cast<unsigned char>(byte) & 0xc0) == 0x80; }

// Returns the value with at most four significant digits and the prefix of its power of 1000.
std::string WithPrefix(double value) {
  constexpr std::array<const char*, 7> kPrefixes = {"", " k", " M", " G", " T", " P", " E"};
  size_t prefix = 0;
  while (std::abs(value) >= 999.95 && prefix + 1 < kPrefixes.size()) {
    value /= 1000;
    ++prefix;
  }
  if (prefix == 0) return fmt::format("{:.0f}", value);
  const int decimals = std::abs(value) < 9.995 ? 2 : 1;
  return fmt::format("{:.{}f}{}", value, decimals, kPrefixes.at(prefix));
}

bool HasFraction(const Cell& cell) {
  const auto* real = std::get_if<double>(&cell);
  return real != nullptr && std::abs(*real - std::round(*real)) > 1e-6;
}

std::string RatioText(double ratio) {
  const double size = std::abs(ratio);
  if (size < 9.9995) return fmt::format("{:.3f}", ratio);
  if (size < 99.995) return fmt::format("{:.2f}", ratio);
  if (size < 999.95) return fmt::format("{:.1f}", ratio);
  return WithPrefix(ratio);
}

enum class LineKind { kTitle, kHeading, kRow, kNote, kFooter };

// A line of the text. Its cells are text already.
struct Line {
  LineKind kind = LineKind::kRow;
  std::vector<std::string> cells;
  double share = 0;  // the row's first share, which decides the colour
};

class TextWriter {
 public:
  TextWriter(const Table& table, const TextStyle& style) : table_(table), style_(style) {
    for (size_t i = 0; i < table.columns.size(); ++i) order_.push_back(i);
    if (style.figures_first) {
      std::stable_partition(order_.begin(), order_.end(),
                            [&](size_t i) { return table.columns[i].unit != ColumnUnit::kText; });
    }
    const auto word = std::find_if(order_.begin(), order_.end(), [&](size_t i) {
      return table.columns[i].unit == ColumnUnit::kText;
    });
    first_word_ = word == order_.end() ? table.columns.size() : *word;
    FindFractions();
    MakeLines();
    MeasureColumns();
  }

  // Whether a line has enough room for its words.
  bool HasRoomForWords() const { return has_room_; }

  std::string Write() const {
    std::string out;
    for (const Line& line : lines_) WriteLine(line, out);
    return out;
  }

 private:
  template <typename Visit>
  void ForEachRow(Visit visit) const {
    for (const RowGroup& group : table_.groups) {
      visit(group.heading);
      for (const TableRow& row : group.rows) visit(row.cells);
    }
    for (const Footer& footer : table_.footers) visit(footer.cells);
  }

  void FindFractions() {
    fractions_.assign(table_.columns.size(), false);
    ForEachRow([&](const std::vector<Cell>& cells) {
      for (size_t i = 0; i < cells.size() && i < fractions_.size(); ++i) {
        if (HasFraction(cells[i])) fractions_[i] = true;
      }
    });
  }

  Line MakeLine(LineKind kind, const std::vector<Cell>& cells, int indent) const {
    Line line;
    line.kind = kind;
    for (size_t i = 0; i < table_.columns.size(); ++i) {
      if (i >= cells.size()) {
        line.cells.emplace_back();
        continue;
      }
      const Column& column = table_.columns[i];
      std::string text = CellText(cells[i], column.unit, fractions_[i]);
      if (i == first_word_) text.insert(0, static_cast<size_t>(indent) * 2, ' ');
      if (column.unit == ColumnUnit::kShare && line.share == 0) line.share = Number(cells[i]);
      line.cells.push_back(std::move(text));
    }
    return line;
  }

  void MakeLines() {
    Line title;
    title.kind = LineKind::kTitle;
    for (const Column& column : table_.columns) title.cells.push_back(column.title);
    lines_.push_back(std::move(title));
    for (const RowGroup& group : table_.groups) {
      if (!group.heading.empty()) {
        lines_.push_back(MakeLine(LineKind::kHeading, group.heading, 0));
      }
      for (const TableRow& row : group.rows) {
        lines_.push_back(MakeLine(LineKind::kRow, row.cells, row.indent));
      }
      if (group.left_out == 0 || first_word_ == table_.columns.size()) continue;
      Line note;
      note.kind = LineKind::kNote;
      note.cells.resize(table_.columns.size());
      note.cells[first_word_] = fmt::format("({} more)", CountText(group.left_out));
      lines_.push_back(std::move(note));
    }
    for (const Footer& footer : table_.footers) {
      lines_.push_back(MakeLine(LineKind::kFooter, footer.cells, 0));
    }
  }

  void MeasureColumns() {
    widths_.assign(table_.columns.size(), 0);
    for (const Line& line : lines_) {
      for (size_t i = 0; i < widths_.size(); ++i) {
        widths_[i] = std::max(widths_[i], DisplayWidth(line.cells[i]));
      }
    }
    for (size_t& width : widths_) width = std::min(width, kWidest);
    if (style_.width == 0 || widths_.empty()) return;
    size_t total = kGap.size() * (widths_.size() - 1);
    size_t words = 0;
    for (size_t i = 0; i < widths_.size(); ++i) {
      total += widths_[i];
      if (table_.columns[i].unit == ColumnUnit::kText) words += widths_[i];
    }
    has_room_ = total - words + std::min(words, kEnoughForWords) <= style_.width;
    while (total > style_.width) {
      size_t widest = widths_.size();
      for (const size_t i : order_) {
        if (table_.columns[i].unit != ColumnUnit::kText || widths_[i] <= kNarrowest) continue;
        if (widest == widths_.size() || widths_[i] > widths_[widest]) widest = i;
      }
      if (widest == widths_.size()) return;
      --widths_[widest];
      --total;
    }
  }

  std::string_view StyleOf(const Line& line) const {
    if (!style_.colour) return "";
    switch (line.kind) {
      case LineKind::kTitle:
      case LineKind::kHeading:
        return kBold;
      case LineKind::kNote:
        return kFaint;
      case LineKind::kRow:
        return line.share >= kHotShare ? kRed : "";
      case LineKind::kFooter:
        return "";
    }
    return "";
  }

  void WriteLine(const Line& line, std::string& out) const {
    // A blank line precedes a group and the footers.
    if (line.kind == LineKind::kHeading) out += '\n';
    if (line.kind == LineKind::kFooter && &line > lines_.data() &&
        (&line)[-1].kind != LineKind::kFooter) {
      out += '\n';
    }
    std::string text;
    for (size_t place = 0; place < order_.size(); ++place) {
      const size_t i = order_[place];
      const Column& column = table_.columns[i];
      const std::string cell = Shortened(line.cells[i], widths_[i], column.shorten);
      const std::string pad(widths_[i] - DisplayWidth(cell), ' ');
      if (place > 0) text += kGap;
      text += column.unit == ColumnUnit::kText ? cell + pad : pad + cell;
    }
    text.erase(text.find_last_not_of(' ') + 1);
    const std::string_view style = StyleOf(line);
    out += style.empty() ? text : Styled(text, style);
    out += '\n';
  }

  const Table& table_;
  const TextStyle& style_;
  std::vector<size_t> order_;    // the columns' indices from left to right
  size_t first_word_ = 0;        // the index of the column that is indented
  std::vector<bool> fractions_;  // whether a cell of the column is not whole, by column
  std::vector<Line> lines_;
  std::vector<size_t> widths_;  // the widths, by column
  bool has_room_ = true;
};

}  // namespace

size_t DisplayWidth(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !IsContinuation(byte); }));
}

std::string Shortened(std::string_view text, size_t width, Shorten how) {
  const size_t have = DisplayWidth(text);
  if (have <= width) return std::string(text);
  if (width == 0) return "";
  const size_t kept = width - 1;  // the columns without the ellipsis
  const size_t tail = how == Shorten::kMiddle ? kept / 2 : 0;
  const size_t head = kept - tail;
  // Returns the byte at which code point number `point` begins.
  const auto byte_of = [&](size_t point) {
    size_t seen = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      if (IsContinuation(text[i])) continue;
      if (seen++ == point) return i;
    }
    return text.size();
  };
  return fmt::format("{}{}{}", text.substr(0, byte_of(head)), kEllipsis,
                     text.substr(byte_of(have - tail)));
}

std::string CellText(const Cell& cell, ColumnUnit unit, bool fraction) {
  if (std::holds_alternative<std::monostate>(cell)) return "";
  if (const auto* text = std::get_if<std::string>(&cell)) return Printable(*text);
  const double number = Number(cell);
  const auto* whole = std::get_if<uint64_t>(&cell);
  switch (unit) {
    case ColumnUnit::kCycles:
    case ColumnUnit::kBytes:
      return WithPrefix(number);
    case ColumnUnit::kShare:
      return ShareText(number);
    case ColumnUnit::kRatio:
      return RatioText(number);
    case ColumnUnit::kSeconds:
      return SecondsText(number);
    case ColumnUnit::kHex:
      return fmt::format("0x{:x}", whole != nullptr ? *whole : static_cast<uint64_t>(number));
    case ColumnUnit::kCount:
    case ColumnUnit::kText:
      break;
  }
  if (whole != nullptr) return CountText(*whole) + (fraction ? ".0" : "");
  if (!fraction && !HasFraction(cell) && number >= 0) {
    return CountText(static_cast<uint64_t>(std::llround(number)));
  }
  if (number < 0) return fmt::format("{:.1f}", number);
  const auto tenths = static_cast<uint64_t>(std::llround(number * 10));
  return fmt::format("{}.{}", CountText(tenths / 10), tenths % 10);
}

std::string Percent(double share) { return CellText(share, ColumnUnit::kShare); }
std::string Count(uint64_t count) { return CellText(count, ColumnUnit::kCount); }

std::string ToText(const Table& table, const TextStyle& style) {
  const TextWriter writer(table, style);
  if (writer.HasRoomForWords() || !CanNarrow(table)) return writer.Write();
  Table narrow = table;
  DropColumns(narrow);
  const TextWriter with_ends(narrow, style);
  if (with_ends.HasRoomForWords()) return with_ends.Write();
  FoldIntervals(narrow);
  return TextWriter(narrow, style).Write();
}

}  // namespace xenoscope::report
