// Commands and their options: how they are described, and what a command line said of them. CLI11,
// which does the work, takes seconds to compile wherever it is included: it is included in
// options.cc alone.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace xenoscope::cli {

// What an option's value may be stored in. A vector takes several values; an optional stays empty
// when the option is not given.
template <typename T>
concept OptionValue = std::same_as<T, std::string> || std::same_as<T, uint16_t> ||
    std::same_as<T, uint32_t> || std::same_as<T, uint64_t> || std::same_as<T, double> ||
    std::same_as<T, std::optional<double>> || std::same_as<T, std::optional<uint32_t>> ||
    std::same_as<T, std::optional<uint64_t>> || std::same_as<T, std::vector<std::string>> ||
    std::same_as<T, std::vector<uint32_t>> || std::same_as<T, std::vector<double>>;

// A handle of one option of a command, which owns it. Setters return the handle, so that they can
// be chained.
class Option {
 public:
  explicit Option(CLI::Option& option) : option_(&option) {}

  // Without the option the command line is wrong.
  Option Required();
  // Only these words are right. -h lists them.
  Option OneOf(const std::vector<std::string>& words);
  // Only numbers in [min, max] are right. -h names the range and the type of number.
  Option Range(int min, int max);
  Option Range(uint32_t min, uint32_t max);
  Option Range(double min, double max);
  Option PositiveNumber();
  Option ExistingFile();
  Option ExistingDirectory();
  // With the option of that name ("--per"), added before, the command line is wrong.
  Option Excludes(const std::string& name);

  // Divides a word into several values.
  Option SplitAt(char delimiter);
  // Takes one word each time it is given: the words after it are positionals.
  Option OneWordEach();
  // As OneWordEach(), and -h does not mark it as one that takes several.
  Option Repeatable();

  // The heading of -h below which it is listed.
  Option Group(const std::string& name);
  // What -h calls its value.
  Option ValueName(const std::string& name);
  // What -h has in place of the value's name and all that is said of it.
  Option ValueText(const std::string& text);
  // Shows in -h the value that the variable has now.
  Option ShowDefault();

  const std::vector<std::string>& ShortNames() const;  // without "-"
  const std::vector<std::string>& LongNames() const;   // without "--"
  std::string PositionalName() const;
  bool IsPositional() const;
  // The value's name and what it may be: "TEXT:{text,json}".
  std::string ValueType() const;
  // How many values it takes at most; 0 for a flag.
  int MostValues() const;
  const std::string& Description() const;
  std::string Default() const;           // as ShowDefault() has it, else empty
  const std::string& GroupName() const;  // empty where -h does not list it
  // The words that the command line gave it.
  const std::vector<std::string>& Words() const;
  bool IsGiven() const;

 private:
  CLI::Option* option_;
};

// A handle of the program or of one of its subcommands. The variables that options write to, and
// what functions refer to, must outlive the parsing.
class Command {
 public:
  explicit Command(CLI::App& app) : app_(&app) {}
  bool operator==(const Command&) const = default;

  Command AddSubcommand(const std::string& name, const std::string& description);
  // An option, or a positional where `names` have no dash ("-d,--domain", "INPUT"). Its value goes
  // into `value`, whose content is the default.
  template <OptionValue T>
  Option AddOption(const std::string& names, T& value, const std::string& description);
  // An option whose words a function takes, which may throw a usage error.
  Option AddWordOption(const std::string& names, std::function<void(const std::string&)> take,
                       const std::string& description);
  Option AddWordsOption(const std::string& names,
                        std::function<void(const std::vector<std::string>&)> take,
                        const std::string& description);
  // "--x,!--no-x" is a flag with its opposite.
  Option AddFlag(const std::string& names, bool& value, const std::string& description);
  // Text at the end of -h.
  void SetFooter(const std::string& text);
  // Called when the command line has been read and is right so far; may throw a usage error.
  void SetCallback(std::function<void()> callback);

  std::string_view Name() const;
  std::string Description() const;
  std::string Footer() const;
  // In the order of -h; positionals too.
  std::vector<Option> Options() const;
  // By name, "--debuginfod".
  std::optional<Option> FindOption(const std::string& name) const;
  std::vector<Command> Subcommands() const;  // in the order of -h

 private:
  CLI::App* app_;
};

// What became of reading a command line.
struct ParseResult {
  std::optional<std::string> help;         // what to print, where help or the version was asked for
  std::optional<std::string> error;        // what is wrong, where something is
  std::vector<std::string> unknown_words;  // those that no command and no option takes
};

// A program that has subcommands, of which a command line names one.
class Program {
 public:
  Program(const std::string& name, const std::string& description, const std::string& version);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  // The whole program, as the command above all others.
  Command Root() const { return Command(*app_); }
  // The words begin with the program's name. Once for each object.
  ParseResult Parse(int argc, const char* const* argv);
  // The subcommand that was parsed; the program itself where none was.
  Command Parsed() const;

 private:
  std::unique_ptr<CLI::App> app_;
};

// Throws what callbacks throw when the command line is wrong. The message becomes "OPTION: WHAT",
// or WHAT alone.
[[noreturn]] void ThrowUsageError(const std::string& option, const std::string& what);
[[noreturn]] void ThrowUsageError(const std::string& what);

// An assignment in a file of options, 'symfs = "/srv/dom0"'.
struct ConfigItem {
  std::vector<std::string> sections;  // what stands before the name's last dot
  std::string name;
  std::vector<std::string> values;
};

// The assignments in one line. Empty where there is none.
std::vector<ConfigItem> ReadConfigLine(const std::string& line);

}  // namespace xenoscope::cli
