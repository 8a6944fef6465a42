// xenoscope completion: scripts that let bash and zsh complete commands, options and their words.
#include <fmt/format.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/commands.h"
#include "cli/described_options.h"
#include "cli/output.h"

namespace xenoscope::cli {
namespace {

std::string Replaced(std::string_view text, char what, std::string_view by) {
  std::string out;
  for (const char c : text) c == what ? out.append(by) : out.append(1, c);
  return out;
}

// bash: what may follow, word lists only; file names where nothing is known.

std::string BashCase(Command command) {
  std::vector<std::string> names;
  std::string values;  // cases of the word before
  for (const DescribedOption& option : DescribeOptions(command)) {
    names.insert(names.end(), option.names.begin(), option.names.end());
    if (option.value.empty()) continue;
    values += fmt::format("        {}) words='{}' value=yes ;;\n", fmt::join(option.names, "|"),
                          fmt::join(option.choices, " "));
  }
  return fmt::format("    {})\n      options='{}'\n      case $previous in\n{}      esac ;;\n",
                     command.Name(), fmt::join(names, " "), values);
}

std::string Bash(Command program) {
  std::vector<std::string_view> commands;
  std::string cases;
  for (const Command& command : program.Subcommands()) {
    commands.push_back(command.Name());
    cases += BashCase(command);
  }
  return fmt::format(
      R"(# bash completion for xenoscope
_xenoscope() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}}
  local command= options= words= value= i
  # The words of --format=json are three.
  if [[ $current == = ]]; then
    current=
  elif [[ $previous == = ]]; then
    previous=${{COMP_WORDS[COMP_CWORD - 2]}}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${{COMP_WORDS[i]}} != -* ]]; then command=${{COMP_WORDS[i]}}; break; fi
  done
  case $command in
    '') options='-h --help --version' words='{}' ;;
{}  esac
  if [[ -z $value && $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [[ -n $words ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    compopt -o default 2>/dev/null
    COMPREPLY=()
  fi
}}
complete -F _xenoscope xenoscope
)",
      fmt::join(commands, " "), cases);
}

// zsh: with what each does beside it.

// Inside a single-quoted specification.
std::string ZshText(std::string_view text) {
  std::string out = Replaced(text, '\\', "\\\\");
  out = Replaced(out, '[', "\\[");
  out = Replaced(out, ']', "\\]");
  out = Replaced(out, ':', "\\:");
  return Replaced(out, '\'', "'\\''");
}

std::string ZshValue(const DescribedOption& option) {
  if (option.value.empty()) return "";
  const std::string words =
      option.choices.empty() ? "_files" : fmt::format("({})", fmt::join(option.choices, " "));
  return fmt::format(":{}:{}", ZshText(option.value), words);
}

std::string ZshCase(Command command) {
  std::string out = fmt::format("    {})\n      _arguments", command.Name());
  for (const DescribedOption& option : DescribeOptions(command)) {
    const std::string alone =
        option.several ? "*" : fmt::format("({})", fmt::join(option.names, " "));
    for (const std::string& name : option.names) {
      out += fmt::format(" \\\n        '{}{}[{}]{}'", alone, name, ZshText(option.text),
                         ZshValue(option));
    }
  }
  return out + " \\\n        '*:file:_files' ;;\n";
}

std::string Zsh(Command program) {
  std::string commands;
  std::string cases;
  for (const Command& command : program.Subcommands()) {
    commands += fmt::format("      '{}:{}'\n", command.Name(), ZshText(command.Description()));
    cases += ZshCase(command);
  }
  return fmt::format(
      R"(#compdef xenoscope
_xenoscope() {{
  if (( CURRENT == 2 )); then
    local -a commands=(
{}    )
    _describe command commands
    return
  fi
  shift words
  (( CURRENT-- ))
  case $words[1] in
{}  esac
}}
_xenoscope "$@"
)",
      commands, cases);
}

}  // namespace

void AddCompletion(Command program, CommandAction& run) {
  auto shell = std::make_shared<std::string>();
  Command command =
      program.AddSubcommand("completion", "Print a completion script for bash or zsh");
  command.AddOption("SHELL", *shell, "bash or zsh").Required().OneOf({"bash", "zsh"});
  command.SetFooter(
      "Examples:\n"
      "  source <(xenoscope completion bash)\n"
      "  xenoscope completion zsh > ~/.zsh/_xenoscope");
  command.SetCallback([shell, program, &run] {
    run = [shell, program] { return WriteStdout(*shell == "bash" ? Bash(program) : Zsh(program)); };
  });
}

}  // namespace xenoscope::cli
