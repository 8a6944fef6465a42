// xenoscope completion: scripts that let bash and zsh complete commands, options and their words.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/ascii.h"
#include "base/error.h"
#include "base/mode.h"
#include "cli/commands.h"
#include "cli/described_options.h"
#include "cli/domain_names.h"
#include "cli/output.h"
#include "cli/trace_options.h"
#include "recording/recording.h"

namespace xenoscope::cli {
namespace {

constexpr std::array kModes = {ToString(Mode::kUser), ToString(Mode::kKernel),
                               ToString(Mode::kXen)};

std::string Replaced(std::string_view text, char what, std::string_view by) {
  std::string out;
  for (const char c : text) c == what ? out.append(by) : out.append(1, c);
  return out;
}

// bash: what may follow, word lists only; file names where nothing is known.

std::string BashCase(Command command) {
  std::vector<std::string> names;
  std::string filters;  // with a blank around each
  std::string values;   // cases of the word before
  for (const DescribedOption& option : DescribeOptions(command)) {
    names.insert(names.end(), option.names.begin(), option.names.end());
    if (option.value.empty()) continue;
    if (option.value == kFilterValue) filters = fmt::format(" {} ", fmt::join(option.names, " "));
    values +=
        fmt::format("        {}) words='{}' value=yes{}{}{} ;;\n", fmt::join(option.names, "|"),
                    fmt::join(option.choices, " "), option.list ? " list=yes" : "",
                    option.value == kDomainValue ? " domains=yes" : "",
                    option.value == kFilterValue ? " filter=yes" : "");
  }
  return fmt::format(
      "    {})\n      options='{}'\n      filters='{}'\n      case $previous in\n{}      esac ;;\n",
      command.Name(), fmt::join(names, " "), filters, values);
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
  local command= options= words= value= list= domains= filter= filters= before= word recording i
  # The words of --format=json are three; of --where domain=pv four, the third of which is '='.
  local at=$((COMP_CWORD - 1)) assigned=
  if [[ $current == = ]]; then
    current= assigned=yes
  elif [[ $previous == = ]]; then
    assigned=yes
    at=$((COMP_CWORD - 2))
    previous=${{COMP_WORDS[at]}}
  fi
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${{COMP_WORDS[i]}} != -* ]]; then command=${{COMP_WORDS[i]}}; break; fi
  done
  case $command in
    '') options='-h --help --version' words='{}' ;;
{}  esac
  # What a column may have: that is behind '=', and the option before it.
  word=${{COMP_WORDS[at - 1]}}
  [[ $word != = ]] || word=${{COMP_WORDS[at - 2]}}
  if [[ -n $assigned && -n $word && $filters == *" $word "* ]]; then
    value=yes list=yes
    case $previous in
      domain) domains=yes ;;
      mode) words='{}' ;;
    esac
  fi
  if [[ -n $domains ]]; then
    # The recording is the first word that is a file. Its names are words as they are: a guest may
    # have chosen them, and compgen would run what is in them.
    for word in "${{COMP_WORDS[@]:2}}"; do
      if [[ $word != -* && -e $word ]]; then recording=$word; break; fi
    done
    words=$("${{COMP_WORDS[0]}}" completion --domains "$recording" 2>/dev/null)
  fi
  if [[ -n $list && $current == *,* ]]; then
    before=${{current%,*}},
    current=${{current##*,}}
  fi
  if [[ -z $value && $current == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$current"))
  elif [[ -n $words ]]; then
    COMPREPLY=()
    for word in $words; do
      if [[ $word == "$current"* ]]; then COMPREPLY+=("$before$word${{filter:+=}}"); fi
    done
    [[ -z $filter ]] || compopt -o nospace 2>/dev/null
  else
    compopt -o default 2>/dev/null
    COMPREPLY=()
  fi
}}
complete -F _xenoscope xenoscope
)",
      fmt::join(commands, " "), cases, fmt::join(kModes, " "));
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
  std::string words = "_files";
  if (option.value == kDomainValue) {
    words = "_xenoscope_domains";
  } else if (option.value == kFilterValue) {
    words = fmt::format("_xenoscope_filter {}", fmt::join(option.choices, " "));
  } else if (!option.choices.empty()) {
    const std::string choices = fmt::format("{}", fmt::join(option.choices, " "));
    words = option.list ? "_values -s , word " + choices : "(" + choices + ")";
  }
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
      R"zsh(#compdef xenoscope
# The recording is the first word that is a file.
_xenoscope_domains() {{
  local word recording
  for word in ${{words[2,-1]}}; do
    if [[ $word != -* && -e $word ]]; then recording=$word; break; fi
  done
  _values -s , domain ${{(f)"$(xenoscope completion --domains "$recording" 2>/dev/null)"}}
}}
_xenoscope_filter() {{
  if compset -P 'domain='; then
    _xenoscope_domains
  elif compset -P 'mode='; then
    _values -s , mode {}
  elif ! compset -P '*='; then
    compadd -S = "$@"
  fi
}}
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
)zsh",
      fmt::join(kModes, " "), commands, cases);
}

// Whether a shell takes the name as it is.
bool IsPlain(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '-';
  });
}

// Prints the domains of the recording: names that a shell takes as they are, else numbers.
absl::Status PrintDomains(const std::string& path) {
  XENOSCOPE_ASSIGN_OR_RETURN(const recording::Recording recording,
                             recording::Recording::Open(path.empty() ? kDefaultRecording : path));
  std::string words;
  for (const recording::DomainInfo& domain : recording.info().domains) {
    words += (IsPlain(domain.name) ? domain.name : fmt::format("{}", domain.id.value)) + "\n";
  }
  return WriteStdout(words);
}

}  // namespace

void AddCompletion(Command program, CommandAction& run) {
  auto shell = std::make_shared<std::string>();
  auto recording = std::make_shared<std::optional<std::string>>();
  Command command =
      program.AddSubcommand("completion", "Print a completion script for bash or zsh");
  command.AddOption("SHELL", *shell, "bash or zsh").OneOf({"bash", "zsh"});
  command
      .AddWordOption(
          "--domains", [recording](const std::string& path) { *recording = path; },
          "Instead, print the domains of this recording, one a line: what the scripts complete")
      .ValueName("RECORDING");
  command.SetFooter(
      "Examples:\n"
      "  source <(xenoscope completion bash)\n"
      "  xenoscope completion zsh > ~/.zsh/_xenoscope");
  command.SetCallback([shell, recording, program, &run] {
    if (shell->empty() != recording->has_value()) {
      ThrowUsageError("SHELL", "give bash or zsh, or --domains RECORDING");
    }
    run = [shell, recording, program]() -> absl::Status {
      if (*recording) return PrintDomains(**recording);
      return WriteStdout(*shell == "bash" ? Bash(program) : Zsh(program));
    };
  });
}

}  // namespace xenoscope::cli
