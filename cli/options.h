// Commands and options: their description, and what a command line gave them. CLI11 does the work.
// Each file that includes it takes seconds more to compile, so only options.cc does.
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

// A type in which the value of an option may be stored. A vector takes several values; an optional
// stays empty when the option is not given.
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

  // Makes a command line without the option wrong.
  Option Required();
  // Accepts only these words. -h lists them.
  Option OneOf(const std::vector<std::string>& words);
  // Names the value, and the words that it usually is, for completion: -h does not list them, and
  // others are accepted. A name that ends with ",..." says that the value is a list of such words.
  Option Suggest(const std::string& name, const std::vector<std::string>& words);
  // Accepts only numbers in [min, max]. -h shows the range and the type of number.
  Option Range(int min, int max);
  Option Range(uint32_t min, uint32_t max);
  Option Range(double min, double max);
  // Accepts only numbers from 0 to 100, with or without a % behind them.
  Option Percent();
  Option PositiveNumber();
  Option ExistingFile();
  Option ExistingDirectory();
  // Makes a command line with both options wrong. The other one ("--per") was added before.
  Option Excludes(const std::string& name);

  // Splits a word into several values.
  Option SplitAt(char delimiter);
  // Takes one word each time the option is given; the words after it are positionals.
  Option OneWordEach();
  // Does what OneWordEach() does, and -h does not say that the option takes several words.
  Option Repeatable();

  // Sets the heading of -h under which the option is listed.
  Option Group(const std::string& name);
  // Sets the name of the value in -h.
  Option ValueName(const std::string& name);
  // Sets the text in -h that replaces the name of the value and all notes on it.
  Option ValueText(const std::string& text);
  // Shows the present value of the variable in -h.
  Option ShowDefault();

  const std::vector<std::string>& ShortNames() const;  // without "-"
  const std::vector<std::string>& LongNames() const;   // without "--"
  std::string PositionalName() const;
  bool IsPositional() const;
  // Returns the name of the value, with the words that it may be: "TEXT:{text,json}".
  std::string ValueType() const;
  // Whether the value is a list, with commas between its words.
  bool IsList() const;
  // Returns the maximum number of values; 0 for a flag.
  int MaxValues() const;
  const std::string& Description() const;
  std::string Default() const;           // as ShowDefault() has it, else empty
  const std::string& GroupName() const;  // empty where -h does not list it
  // Returns the words that the command line gave to the option.
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
  // Adds an option ("-d,--domain"), or a positional where `names` has no dash ("INPUT"). Its value
  // is stored in `value`, whose content is the default.
  template <OptionValue T>
  Option AddOption(const std::string& names, T& value, const std::string& description);
  // Both add an option whose words are passed to `take`, which may throw a usage error.
  Option AddWordOption(const std::string& names,
                       const std::function<void(const std::string&)>& take,
                       const std::string& description);
  Option AddWordsOption(const std::string& names,
                        const std::function<void(const std::vector<std::string>&)>& take,
                        const std::string& description);
  // Adds a flag; "--x,!--no-x" adds its opposite too.
  Option AddFlag(const std::string& names, bool& value, const std::string& description);
  // Adds a flag that calls `act` where it is given.
  Option AddActionFlag(const std::string& names, const std::function<void()>& act,
                       const std::string& description);
  // Sets the text at the end of -h.
  void SetFooter(const std::string& text);
  // Sets a function that is called when the command line was parsed without an error; it may throw
  // a usage error.
  void SetCallback(std::function<void()> callback);

  std::string_view Name() const;
  std::string Description() const;
  std::string Footer() const;
  // Returns options and positionals in the order of -h.
  std::vector<Option> Options() const;
  // Returns the option of this name ("--debuginfod"), if the command has it.
  std::optional<Option> FindOption(const std::string& name) const;
  std::vector<Command> Subcommands() const;  // in the order of -h

 private:
  CLI::App* app_;
};

// The result of parsing a command line.
struct ParseResult {
  std::optional<std::string> help;         // text to print when help or the version was asked for
  std::optional<std::string> error;        // the error, if there is one
  std::vector<std::string> unknown_words;  // words that no command and no option takes
};

// A program with subcommands; a command line names one of them.
class Program {
 public:
  Program(const std::string& name, const std::string& description, const std::string& version);
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  ~Program();

  // Returns the program as the parent of all commands.
  Command Root() const { return Command(*app_); }
  // Parses the words; the first is the program's name. To be called once.
  ParseResult Parse(int argc, const char* const* argv);
  // Returns the subcommand that was parsed, or the program itself when there was none.
  Command Parsed() const;

 private:
  std::unique_ptr<CLI::App> app_;
};

// Both throw a usage error, with which callbacks reject a command line. The message is
// "OPTION: WHAT", or WHAT alone.
[[noreturn]] void ThrowUsageError(const std::string& option, const std::string& what);
[[noreturn]] void ThrowUsageError(const std::string& what);

// An assignment in a file of options, 'symfs = "/srv/dom0"'.
struct ConfigItem {
  std::vector<std::string> sections;  // the parts of the name before its last dot
  std::string name;
  std::vector<std::string> values;
};

// Returns the assignments in one line; nothing when there is none.
std::vector<ConfigItem> ReadConfigLine(const std::string& line);

}  // namespace xenoscope::cli
