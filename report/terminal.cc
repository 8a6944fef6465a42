#include "report/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <string_view>

namespace xenoscope::report {
namespace {

std::string_view Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

TextStyle StdoutStyle() {
  TextStyle style;
  if (isatty(STDOUT_FILENO) != 0) {
    style.colour = Environment("NO_COLOR").empty() && Environment("TERM") != "dumb";
    winsize size{};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0) style.width = size.ws_col;
  }
  const std::string_view columns = Environment("COLUMNS");
  size_t given = 0;
  if (std::from_chars(columns.data(), columns.data() + columns.size(), given).ec == std::errc()) {
    style.width = given;
  }
  return style;
}

size_t StdoutRows() {
  size_t rows = 24;
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0) rows = size.ws_row;
  const std::string_view lines = Environment("LINES");
  size_t given = 0;
  if (std::from_chars(lines.data(), lines.data() + lines.size(), given).ec == std::errc()) {
    rows = given;
  }
  return rows;
}

size_t StderrColumns() {
  constexpr size_t kUsual = 80;
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : kUsual;
}

}  // namespace xenoscope::report
