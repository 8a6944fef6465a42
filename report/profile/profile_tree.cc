#include "report/profile/profile_tree.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "report/profile/profile_figures.h"

namespace xenoscope::report {
namespace {

using correlate::Dimension;
using correlate::ProfileRow;

// A row of the profile, or a subtotal of such rows.
struct Node {
  const ProfileRow* row = nullptr;
  std::vector<uint32_t> children;  // indices in the level below
  bool shown = false;
};

class TreeBuilder {
 public:
  TreeBuilder(const ProfileReport& report, const ProfileSelection& selection)
      : report_(report), selection_(selection) {
    std::string title;
    for (const Dimension dimension : report.by) {
      if (!title.empty()) title += " / ";
      title += ToString(dimension);
    }
    table_.columns.push_back({"tree", title, ColumnUnit::kText, Shorten::kMiddle});
    AddFigureColumns(report, Reader::kPeople, table_);
    const auto by =
        std::ranges::find(report.by, selection.sort, [](Dimension each) { return ToString(each); });
    sorted_level_ = static_cast<size_t>(by - report.by.begin());
    figure_ = table_.Find(sorted_level_ < report.by.size() ? "share" : selection.sort);
    MakeNodes();
  }

  Table Build() {
    std::vector<uint32_t> domains;
    for (uint32_t i = 0; i < levels_.front().size(); ++i) {
      if (IsSelected(selection_, *levels_.front()[i].row)) domains.push_back(i);
    }
    Sort(0, domains);
    for (const uint32_t domain : domains) {
      table_.groups.push_back({CellsOf(0, *levels_.front()[domain].row), {}, 0});
      table_.groups.back().left_out = Choose(domain);
      AddRows(0, domain);
    }
    LimitDomains(report_, selection_, 0, table_);
    return std::move(table_);
  }

 private:
  void MakeNodes() {
    const correlate::ProfileResult& result = report_.result;
    AddLevel(result.domains);
    for (const std::vector<ProfileRow>& rows : result.subtotals) AddLevel(rows);
    AddLevel(result.rows);
    std::map<DomainId, uint32_t> domains;
    for (uint32_t i = 0; i < result.domains.size(); ++i) domains[result.domains[i].domain] = i;
    for (size_t level = 1; level < levels_.size(); ++level) {
      for (uint32_t i = 0; i < levels_[level].size(); ++i) {
        const ProfileRow& row = *levels_[level][i].row;
        const uint32_t above = level == 1 ? domains.at(row.domain) : row.part_of;
        levels_[level - 1][above].children.push_back(i);
      }
    }
  }

  void AddLevel(const std::vector<ProfileRow>& rows) {
    std::vector<Node>& nodes = levels_.emplace_back();
    for (const ProfileRow& row : rows) nodes.push_back({.row = &row, .children = {}});
  }

  // Returns the cells of the node's line.
  std::vector<Cell> CellsOf(size_t level, const ProfileRow& row) const {
    std::vector<Cell> cells;
    if (level > 0) {
      cells.emplace_back(DimensionText(report_, row, report_.by[level]));
    } else if (report_.has_domain_numbers) {
      cells.emplace_back(DomainTitle(row.domain, report_.domain_name(row.domain)));
    } else {
      cells.emplace_back(DomainLabel(report_, row.domain));
    }
    AddFigures(report_, row, Reader::kPeople, cells);
    NameTraced(report_, table_, row, cells);
    return cells;
  }

  // Sorts nodes of a level: words and numbers of things ascend, figures descend.
  void Sort(size_t level, std::vector<uint32_t>& nodes) const {
    std::vector<std::pair<Cell, uint32_t>> order;
    const bool is_thing = level == sorted_level_;
    for (const uint32_t node : nodes) {
      const ProfileRow& row = *levels_[level][node].row;
      if (is_thing) {
        order.emplace_back(DimensionCell(report_, row, report_.by[level]), node);
      } else {
        order.emplace_back(std::move(CellsOf(level, row)[figure_]), node);
      }
    }
    std::ranges::stable_sort(order, [is_thing](const auto& a, const auto& b) {
      return is_thing ? Less(a.first, b.first) : Less(b.first, a.first);
    });
    for (size_t i = 0; i < nodes.size(); ++i) nodes[i] = order[i].second;
  }

  // Collects the rows of the profile below a node that reach the threshold. Returns the number of
  // all rows below it.
  size_t Collect(size_t level, uint32_t node, std::vector<uint32_t>& rows) const {
    const std::vector<uint32_t>& children = levels_[level][node].children;
    if (level + 2 < levels_.size()) {
      size_t all = 0;
      for (const uint32_t child : children) all += Collect(level + 1, child, rows);
      return all;
    }
    for (const uint32_t child : children) {
      if (LargestShare(*levels_[level + 1][child].row) >= selection_.threshold)
        rows.push_back(child);
    }
    return children.size();
  }

  // Marks what is shown below the domain. Returns the number of rows that are not.
  size_t Choose(uint32_t domain) {
    const size_t last = levels_.size() - 1;
    std::vector<uint32_t> rows;
    const size_t all = Collect(0, domain, rows);
    Sort(last, rows);
    if (selection_.limit > 0 && rows.size() > selection_.limit) rows.resize(selection_.limit);
    double smallest = 1;
    for (const uint32_t row : rows) {
      levels_[last][row].shown = true;
      smallest = std::min(smallest, LargestShare(*levels_[last][row].row));
    }
    Mark(0, domain, std::max(smallest, selection_.threshold));
    return all - rows.size();
  }

  // Marks the subtotals below a node that are shown. Returns whether one of its rows is.
  bool Mark(size_t level, uint32_t node, double least) {
    bool has_shown = false;
    for (const uint32_t child : levels_[level][node].children) {
      Node& below = levels_[level + 1][child];
      if (level + 2 < levels_.size()) {
        below.shown = Mark(level + 1, child, least) || LargestShare(*below.row) >= least;
      }
      has_shown = has_shown || below.shown;
    }
    return has_shown;
  }

  // Adds the lines below a node.
  void AddRows(size_t level, uint32_t node) {
    std::vector<uint32_t> shown;
    for (const uint32_t child : levels_[level][node].children) {
      if (levels_[level + 1][child].shown) shown.push_back(child);
    }
    Sort(level + 1, shown);
    for (const uint32_t child : shown) {
      table_.AddRow(CellsOf(level + 1, *levels_[level + 1][child].row),
                    static_cast<int>(level) + 1);
      if (level + 2 < levels_.size()) AddRows(level + 1, child);
    }
  }

  const ProfileReport& report_;
  const ProfileSelection& selection_;
  Table table_;
  size_t sorted_level_ = 0;  // the level that is sorted by its names; number of levels: none is
  size_t figure_ = 0;        // the column by which the other levels are sorted
  std::vector<std::vector<Node>> levels_;  // domains, subtotals, and the rows of the profile
};

}  // namespace

Table ProfileTree(const ProfileReport& report, const ProfileSelection& selection) {
  return TreeBuilder(report, selection).Build();
}

}  // namespace xenoscope::report
