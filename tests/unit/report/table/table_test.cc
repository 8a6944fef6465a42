#include "report/table/table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "report/table/table_csv.h"
#include "report/table/table_json.h"
#include "report/table/table_text.h"
#include "report/terminal_text.h"

namespace xenoscope::report {
namespace {

using namespace std::string_literals;
using testing::HasSubstr;

Table Fruits() {
  Table table;
  table.columns = {{"name", "name", ColumnUnit::kText, Shorten::kMiddle},
                   {"samples", "samples", ColumnUnit::kCount, Shorten::kEnd},
                   {"share", "share", ColumnUnit::kShare, Shorten::kEnd},
                   {"cycles", "cycles", ColumnUnit::kCycles, Shorten::kEnd}};
  table.AddRow({"pear"s, uint64_t{7}, 0.07, 7.4e9});
  table.AddRow({"apple"s, uint64_t{1234}, 0.9, 999'960.0});
  table.AddRow({"fig"s, Cell(), Cell(), Cell()});
  return table;
}

TEST(TableText, AlignsWordsLeftAndNumbersRight) {
  EXPECT_EQ(ToText(Fruits(), {}),
            "name   samples   share  cycles\n"
            "pear         7   7.00%  7.40 G\n"
            "apple    1,234  90.00%  1.00 M\n"
            "fig\n");
}

TEST(TableText, PutsFiguresFirstWhenAsked) {
  EXPECT_EQ(ToText(Fruits(), {.width = 0, .colour = false, .figures_first = true}),
            "samples   share  cycles  name\n"
            "      7   7.00%  7.40 G  pear\n"
            "  1,234  90.00%  1.00 M  apple\n"
            "                         fig\n");
}

Table Intervals() {
  Table table;
  table.columns = {{"name", "name"},
                   {"share", "share", ColumnUnit::kShare, Shorten::kEnd},
                   {"low", "low", ColumnUnit::kShare, Shorten::kEnd, Narrow::kFold},
                   {"high", "high", ColumnUnit::kShare, Shorten::kEnd},
                   {"cycles", "cycles", ColumnUnit::kCycles, Shorten::kEnd, Narrow::kDrop}};
  table.groups.push_back({{"all"s, 0.9, "traced"s, Cell(), 9e9}, {}, 0});
  table.AddRow({"a function with a name of more than 40 columns"s, 0.5, 0.42, 0.55, 5e9}, 1);
  table.AddRow({"no upper end"s, 0.4, 0.3, Cell(), 4e9}, 1);
  table.footers = {{{"total"s, 0.9}}};
  return table;
}

TEST(TableText, DropsFiguresThenFoldsIntervalsWhereItIsNarrow) {
  const TextStyle wide{.width = 80, .colour = false, .figures_first = true};
  EXPECT_THAT(ToText(Intervals(), wide), HasSubstr(" share     low    high  cycles  name\n"));
  TextStyle narrow = wide;
  narrow.width = 60;
  EXPECT_THAT(ToText(Intervals(), narrow), HasSubstr(" share     low    high  name\n"));
  narrow.width = 50;
  EXPECT_EQ(ToText(Intervals(), narrow),
            " share       ±  name\n"
            "\n"
            "90.00%  traced  all\n"
            "50.00%   8.00%    a function with… than 40 columns\n"
            "40.00%            no upper end\n"
            "\n"
            "90.00%          total\n");
}

TEST(TableText, SeparatesGroupsAndFooters) {
  Table table;
  table.columns = {{"n", "n", ColumnUnit::kCount, Shorten::kEnd}, {"who", "who"}};
  table.groups.push_back({{uint64_t{3}, "d1"s}, {{{uint64_t{2}, "a"s}, 1}}, 0});
  table.groups.push_back({{uint64_t{9}, "d2"s}, {{{uint64_t{9}, "b"s}, 1}}, 4});
  table.footers = {{{uint64_t{12}, "total"s}}, {{uint64_t{0}, "lost"s}}};
  EXPECT_EQ(ToText(table, {}),
            " n  who\n"
            "\n"
            " 3  d1\n"
            " 2    a\n"
            "\n"
            " 9  d2\n"
            " 9    b\n"
            "    (4 more)\n"
            "\n"
            "12  total\n"
            " 0  lost\n");
}

TEST(TableText, ShortensTheWidestWordsUntilALineFits) {
  Table table;
  table.columns = {{"n", "n", ColumnUnit::kCount, Shorten::kEnd}, {"function", "function"}};
  table.AddRow({uint64_t{1}, "std::vector<int>::push_back(int const&)"s});
  EXPECT_EQ(ToText(table, {.width = 24, .colour = false, .figures_first = false}),
            "n  function\n"
            "1  std::vecto…nt const&)\n");
}

TEST(TableText, NeverShortensNumbers) {
  Table table;
  table.columns = {{"n", "n", ColumnUnit::kCount, Shorten::kEnd}};
  table.AddRow({uint64_t{123456789}});
  EXPECT_EQ(ToText(table, {.width = 4, .colour = false, .figures_first = false}),
            "          n\n123,456,789\n");
}

TEST(TableText, GivesAColumnADecimalWhenOneCellNeedsIt) {
  Table table;
  table.columns = {{"n", "n", ColumnUnit::kCount, Shorten::kEnd}};
  table.AddRow({uint64_t{1000}});
  table.AddRow({2.25});
  EXPECT_EQ(ToText(table, {}), "      n\n1,000.0\n    2.3\n");
}

TEST(TableText, ShowsControlCharactersOfNamesAsQuestionMarks) {
  EXPECT_EQ(CellText("a\x1b[31mb\n"s, ColumnUnit::kText), "a?[31mb?");
}

TEST(TableText, CountsCodePointsNotBytes) {
  EXPECT_EQ(DisplayWidth("größe"), 5U);
  EXPECT_EQ(Shortened("größengröße", 5, Shorten::kMiddle), "gr…ße");
  EXPECT_EQ(Shortened("größengröße", 5, Shorten::kEnd), "größ…");
  EXPECT_EQ(Shortened("abc", 0, Shorten::kEnd), "");
}

TEST(TableText, LongTextDoesNotWidenTable) {
  Table table;
  table.columns = {{"function", "function"}, {"samples", "samples", ColumnUnit::kCount}};
  table.AddRow({"first" + std::string(1'000'000, 'x') + "last", uint64_t{1}});
  table.AddRow({"b"s, uint64_t{2}});
  const std::string text = ToText(table, {});
  EXPECT_LT(text.size(), 2'000U);
  EXPECT_THAT(text, HasSubstr("\nfirstxxx"));
  EXPECT_THAT(text, HasSubstr("x…x"));
  EXPECT_THAT(text, HasSubstr("xlast        1\n"));
}

TEST(TableText, ShowsEachUnit) {
  EXPECT_EQ(CellText(1.5, ColumnUnit::kSeconds), "1.500 s");
  EXPECT_EQ(CellText(0.0123, ColumnUnit::kSeconds), "12.300 ms");
  EXPECT_EQ(CellText(45e-6, ColumnUnit::kSeconds), "45.000 us");
  EXPECT_EQ(CellText(3e-9, ColumnUnit::kSeconds), "3 ns");
  EXPECT_EQ(CellText(uint64_t{0xffff82d040203120}, ColumnUnit::kHex), "0xffff82d040203120");
  EXPECT_EQ(CellText(uint64_t{999}, ColumnUnit::kCycles), "999");
  EXPECT_EQ(CellText(uint64_t{18'200'000}, ColumnUnit::kBytes), "18.2 M");
  EXPECT_EQ(CellText(Cell(), ColumnUnit::kCount), "");
}

TEST(TableText, ColoursTitlesAndHotRows) {
  Table table;
  table.columns = {{"share", "share", ColumnUnit::kShare, Shorten::kEnd}};
  table.AddRow({0.5});
  table.AddRow({0.01});
  EXPECT_EQ(ForTerminal(ToText(table, {.width = 0, .colour = true, .figures_first = false})),
            "\x1b[1m share\x1b[0m\n\x1b[31m50.00%\x1b[0m\n 1.00%\n");
}

TEST(Table, SortsRowsAndGroupsWithEmptyCellsLast) {
  Table table = Fruits();
  table.Sort(table.Find("samples"), /*descending=*/true);
  EXPECT_EQ(std::get<std::string>(table.groups[0].rows[0].cells[0]), "apple");
  EXPECT_EQ(std::get<std::string>(table.groups[0].rows[2].cells[0]), "fig");
  table.Sort(table.Find("samples"), /*descending=*/false);
  EXPECT_EQ(std::get<std::string>(table.groups[0].rows[0].cells[0]), "pear");
  EXPECT_EQ(std::get<std::string>(table.groups[0].rows[2].cells[0]), "fig");
  EXPECT_EQ(table.Find("colour"), table.columns.size());
}

TEST(Table, LimitsGroupsAndCountsOmittedRows) {
  Table table = Fruits();
  table.Limit(0);
  EXPECT_EQ(table.groups[0].rows.size(), 3U);
  table.Limit(1);
  EXPECT_EQ(table.groups[0].rows.size(), 1U);
  EXPECT_EQ(table.groups[0].left_out, 2U);
}

TEST(TableCsv, QuotesOnlyWhatMustBe) {
  Table table;
  table.columns = {{"function", "Function"}, {"share", "Share", ColumnUnit::kShare, Shorten::kEnd}};
  table.AddRow({R"(operator""_x(int, int))"s, 0.25});
  table.AddRow({"plain"s, Cell()});
  table.footers = {{{"total"s, 1.0}}};
  const std::string expected =
      "function,share\r\n"
      R"csv("operator""""_x(int, int)",0.25)csv"
      "\r\nplain,\r\n";
  EXPECT_EQ(ToCsv(table), expected);
}

TEST(TableCsv, EscapesFormulas) {
  struct Case {
    const char* word;
    const char* field;
  };
  constexpr Case kCases[] = {
      {"=cmd|'/C calc'!A0", R"("'=cmd|'/C calc'!A0")"},
      {"+1", R"("'+1")"},
      {"-1", R"("'-1")"},
      {"@SUM(A1)", "\"'@SUM(A1)\""},
      {"\ta", "\"'\ta\""},
      {"\ra", "\"'\ra\""},
      {"=\"a\"", R"("'=""a""")"},
      {"-", "-"},
      {"a=b", "a=b"},
      {"", ""},
  };
  for (const Case& c : kCases) {
    Table table;
    table.columns = {{"function", "Function"},
                     {"change", "Change", ColumnUnit::kShare, Shorten::kEnd}};
    table.AddRow({std::string(c.word), -0.25});  // numbers do not change
    EXPECT_EQ(ToCsv(table), fmt::format("function,change\r\n{},-0.25\r\n", c.field));
  }
}

TEST(TableJson, KeepsKeysInTheOrderOfTheColumns) {
  Table table = Fruits();
  table.columns.push_back({"at", "at", ColumnUnit::kHex, Shorten::kEnd});
  table.groups[0].rows[0].cells.emplace_back(uint64_t{0x10});
  EXPECT_EQ(ToJson(table)[0].dump(),
            R"({"name":"pear","samples":7,"share":0.07,"cycles":7400000000,"at":"0x10"})");
  EXPECT_EQ(ToJson(table)[2].dump(), R"({"name":"fig","samples":null,"share":null,"cycles":null})");
}

TEST(TableJson, ReplacesInvalidUtf8) {
  EXPECT_EQ(Dump(nlohmann::ordered_json("a\xff")), "\"a\uFFFD\"\n");
}

}  // namespace
}  // namespace xenoscope::report
