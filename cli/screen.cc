#include "cli/screen.h"

#include <clocale>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/error.h"
#include "report/terminal_text.h"

// Included last: its macros would change other headers.
#include <curses.h>

namespace xenoscope::cli {
namespace {

size_t Positive(int number) { return number > 0 ? static_cast<size_t>(number) : 1; }

// Cuts the text to the columns that are left in the line, as curses counts them.
void AddLine(int row, std::string_view line, attr_t attributes) {
  attrset(attributes);
  move(row, 0);
  addnstr(line.data(), static_cast<int>(line.size()));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Screen>> Screen::Open() {
  std::setlocale(LC_CTYPE, "C.UTF-8");
  if (newterm(nullptr, stdout, stdin) == nullptr) {  // initscr would end the process
    const char* const kind = std::getenv("TERM");
    return NotFoundError(
        "the terminal type '{}' (TERM) is not known on this machine: try TERM=xterm or TERM=linux, "
        "install ncurses-term, or print frames as text with -b",
        kind == nullptr ? "" : kind);
  }
  cbreak();
  noecho();
  keypad(stdscr, TRUE);
  curs_set(0);
  return std::unique_ptr<Screen>(new Screen());
}

Screen::~Screen() { endwin(); }

size_t Screen::columns() const { return Positive(COLS); }
size_t Screen::rows() const { return Positive(LINES); }

void Screen::Show(std::string_view text, std::string_view keys) {
  erase();
  const std::string safe = report::ForTerminal(text);
  text = safe;
  const int last = LINES - 1;
  bool title = true;
  for (int row = 0; row < last && !text.empty(); ++row) {
    const size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    AddLine(row, line, title ? A_BOLD : A_NORMAL);
    title = line.empty();
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  AddLine(last, keys, A_REVERSE);
  attrset(A_NORMAL);
  refresh();
}

std::optional<char> Screen::Key(std::chrono::milliseconds max_wait) {
  timeout(static_cast<int>(max_wait.count()));
  const int key = getch();
  if (key < 0 || key > 0x7f) return std::nullopt;  // none, or one with a name; of resizing, too
  return static_cast<char>(key);
}

}  // namespace xenoscope::cli
