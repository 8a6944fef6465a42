// xenoscope man: the manual pages, made from the texts of -h, in the language of man(7).
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/spelling.h"
#include "cli/commands.h"
#include "cli/described_options.h"
#include "cli/options.h"
#include "cli/output.h"

namespace xenoscope::cli {
namespace {

// Text as man(7) takes it: hyphens that are copied stay hyphens, and no line is taken for a
// request.
std::string Escaped(std::string_view text) {
  std::string out;
  bool at_begin = true;
  for (const char c : text) {
    if (at_begin && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\') {
      out += "\\e";
    } else if (c == '-') {
      out += "\\-";
    } else {
      out += c;
    }
    at_begin = c == '\n';
  }
  return out;
}

std::string Upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

// ".TP", what to type, and what it does.
std::string Item(const DescribedOption& option) {
  std::string typed;
  for (const std::string& name : option.names) {
    typed += fmt::format("{}\\fB{}\\fR", typed.empty() ? "" : ", ", Escaped(name));
  }
  if (!option.value.empty()) {
    typed += fmt::format("{}\\fI{}\\fR", typed.empty() ? "" : " ", Escaped(option.value));
  }
  if (option.several) typed += " ...";
  std::string out = fmt::format(".TP\n{}\n{}\n", typed, Escaped(option.text));
  if (!option.choices.empty()) {
    out += ".br\n" +
           Escaped(fmt::format("{} of {}.", option.list ? "Some" : "One",
                               fmt::join(option.choices, ", "))) +
           "\n";
  }
  if (!option.standard.empty()) {
    out += ".br\n" + Escaped(fmt::format("Default: {}.", option.standard)) + "\n";
  }
  return out;
}

// A footer of -h: lines that are not indented are headings; what is, stays as it is.
std::string FooterSections(std::string_view footer) {
  std::string out;
  bool literal = false;
  while (!footer.empty()) {
    const size_t end = std::min(footer.find('\n'), footer.size());
    const std::string_view line = footer.substr(0, end);
    footer.remove_prefix(std::min(end + 1, footer.size()));
    const bool indented = line.starts_with(' ');
    if (indented != literal) {
      out += indented ? ".nf\n" : ".fi\n";
      literal = indented;
    }
    if (indented || line.find_first_of("`.") != std::string_view::npos) {
      if (!indented) out += ".PP\n";
      out += Escaped(line) + "\n";
    } else if (!line.empty()) {
      const std::string_view heading = line.ends_with(':') ? line.substr(0, line.size() - 1) : line;
      out += fmt::format(".SH {}\n", Escaped(Upper(heading)));
    }
  }
  if (literal) out += ".fi\n";
  return out;
}

std::string Page(Command program, Command command) {
  const bool whole = program == command;
  const std::string called =
      whole ? std::string(program.Name()) : fmt::format("{} {}", program.Name(), command.Name());
  const std::string name =
      whole ? std::string(program.Name()) : fmt::format("{}-{}", program.Name(), command.Name());
  std::string page = fmt::format(".TH {} 1 \"\" \"xenoscope {}\" \"Xenoscope\"\n",
                                 Escaped(Upper(name)), XENOSCOPE_VERSION);
  page += fmt::format(".SH NAME\n{} \\- {}\n", Escaped(name), Escaped(command.Description()));
  page += fmt::format(".SH SYNOPSIS\n\\fB{}\\fR [\\fIOPTIONS\\fR]", called);
  const std::vector<DescribedOption> positionals = DescribePositionals(command);
  for (const DescribedOption& positional : positionals) {
    page += fmt::format(" [\\fI{}\\fR{}]", positional.value, positional.several ? " ..." : "");
  }
  page += whole ? " \\fICOMMAND\\fR ...\n.SH COMMANDS\n" : "\n";
  if (whole) {
    for (const Command& each : program.Subcommands()) {
      page += fmt::format(".TP\n\\fB{}\\-{}\\fR(1)\n{}\n", program.Name(), each.Name(),
                          Escaped(each.Description()));
    }
  }
  page += ".SH OPTIONS\n";
  for (const DescribedOption& positional : positionals) page += Item(positional);
  for (const DescribedOption& option : DescribeOptions(command)) page += Item(option);
  page += FooterSections(command.Footer());
  page +=
      ".SH EXIT STATUS\n0: success. 1: bad data, or a failure. 2: an error in the command "
      "line.\n.SH SEE ALSO\n";
  if (whole) return page + ".BR xentrace (8)\n";
  return page + fmt::format("\\fB{}\\fR(1)\n", program.Name());
}

}  // namespace

void AddMan(Command program, CommandAction& run) {
  struct Options {
    std::string name;
    bool list = false;
  };
  auto options = std::make_shared<Options>();
  Command command = program.AddSubcommand("man", "Print a manual page for man -l");
  command.AddOption("COMMAND", options->name, "Command; default: the page of the program");
  command.AddFlag("--list", options->list, "Print the names of all commands instead");
  command.SetFooter(
      "Examples:\n"
      "  xenoscope man report | man -l -\n"
      "  xenoscope man > /usr/local/share/man/man1/xenoscope.1");
  command.SetCallback([options, program, &run] {
    std::optional<Command> about;
    if (options->name.empty()) about = program;
    std::vector<std::string_view> names;
    for (const Command& each : program.Subcommands()) {
      names.push_back(each.Name());
      if (each.Name() == options->name) about = each;
    }
    if (!about) {
      ThrowUsageError("there is no command " + options->name + SpellingHint(options->name, names));
    }
    std::string text =
        options->list ? fmt::format("{}\n", fmt::join(names, "\n")) : Page(program, *about);
    run = [text = std::move(text)] { return WriteStdout(text); };
  });
}

}  // namespace xenoscope::cli
