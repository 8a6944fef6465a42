#include "cli/options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <concepts>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"

namespace xenoscope::cli {
namespace {

// Whether values are numbers without a sign. CLI11 converts a negative one as strtoull(3) does: to
// a huge one.
template <typename T>
constexpr bool kIsUnsigned =
    std::unsigned_integral<T> || std::same_as<T, std::optional<uint32_t>> ||
    std::same_as<T, std::optional<uint64_t>> || std::same_as<T, std::vector<uint32_t>>;

std::string RefuseNegative(const std::string& word) {
  return word.starts_with('-') ? word + " is negative; write a number from 0 on" : "";
}

}  // namespace

Option Option::Required() {
  option_->required();
  return *this;
}

Option Option::OneOf(const std::vector<std::string>& words) {
  option_->check(CLI::IsMember(words));
  return *this;
}

Option Option::Suggest(const std::string& name, const std::vector<std::string>& words) {
  option_->type_name(name + ":{" + CLI::detail::join(words, ",") + "}");
  option_->option_text(option_->get_expected_max() > 1 ? name + " ..." : name);
  return *this;
}

Option Option::Range(int min, int max) {
  option_->check(CLI::Range(min, max));
  return *this;
}

Option Option::Range(uint32_t min, uint32_t max) {
  option_->check(CLI::Range(min, max));
  return *this;
}

Option Option::Range(double min, double max) {
  option_->check(CLI::Range(min, max));
  return *this;
}

Option Option::Percent() {
  // The number alone is what is stored.
  const auto number = [](const std::string& text) {
    return text.ends_with('%') ? text.substr(0, text.size() - 1) : text;
  };
  option_->transform(CLI::Validator(
      [number](std::string& text) -> std::string {
        double percent = 0;
        const bool is_number = absl::SimpleAtod(number(text), &percent);
        if (!is_number || !(percent >= 0 && percent <= 100)) {
          return fmt::format("'{}' is no percentage: expected a number from 0 to 100, as 2 or 2%",
                             text);
        }
        text = number(text);
        return "";
      },
      "", "percent"));
  return ValueName("PERCENT");
}

Option Option::PositiveNumber() {
  option_->check(CLI::PositiveNumber);
  return *this;
}

Option Option::ExistingFile() {
  option_->check(CLI::ExistingFile);
  return *this;
}

Option Option::ExistingDirectory() {
  option_->check(CLI::ExistingDirectory);
  return *this;
}

Option Option::Excludes(const std::string& name) {
  option_->excludes(name);
  return *this;
}

Option Option::SplitAt(char delimiter) {
  option_->delimiter(delimiter);
  return *this;
}

Option Option::OneWordEach() {
  option_->allow_extra_args(false);
  return *this;
}

Option Option::Repeatable() {
  option_->expected(1)->take_all()->allow_extra_args(false);
  return *this;
}

Option Option::Group(const std::string& name) {
  option_->group(name);
  return *this;
}

Option Option::ValueName(const std::string& name) {
  option_->type_name(name);
  return *this;
}

Option Option::ValueText(const std::string& text) {
  option_->option_text(text);
  return *this;
}

Option Option::ShowDefault() {
  option_->capture_default_str();
  return *this;
}

const std::vector<std::string>& Option::ShortNames() const { return option_->get_snames(); }
const std::vector<std::string>& Option::LongNames() const { return option_->get_lnames(); }
std::string Option::PositionalName() const { return option_->get_name(); }
bool Option::IsPositional() const { return option_->get_positional(); }
std::string Option::ValueType() const { return option_->get_type_name(); }
bool Option::IsList() const {
  return option_->get_delimiter() == ',' ||
         option_->get_type_name().find(",...") != std::string::npos;
}
int Option::MaxValues() const { return option_->get_items_expected_max(); }
const std::string& Option::Description() const { return option_->get_description(); }
std::string Option::Default() const { return option_->get_default_str(); }
const std::string& Option::GroupName() const { return option_->get_group(); }
const std::vector<std::string>& Option::Words() const { return option_->results(); }
bool Option::IsGiven() const { return option_->count() > 0; }

Command Command::AddSubcommand(const std::string& name, const std::string& description) {
  return Command(*app_->add_subcommand(name, description));
}

template <OptionValue T>
Option Command::AddOption(const std::string& names, T& value, const std::string& description) {
  CLI::Option& option = *app_->add_option(names, value, description);
  if constexpr (kIsUnsigned<T>) option.check(RefuseNegative);
  return Option(option);
}

template Option Command::AddOption(const std::string&, std::string&, const std::string&);
template Option Command::AddOption(const std::string&, uint16_t&, const std::string&);
template Option Command::AddOption(const std::string&, uint32_t&, const std::string&);
template Option Command::AddOption(const std::string&, uint64_t&, const std::string&);
template Option Command::AddOption(const std::string&, double&, const std::string&);
template Option Command::AddOption(const std::string&, std::optional<double>&, const std::string&);
template Option Command::AddOption(const std::string&, std::optional<uint32_t>&,
                                   const std::string&);
template Option Command::AddOption(const std::string&, std::optional<uint64_t>&,
                                   const std::string&);
template Option Command::AddOption(const std::string&, std::vector<std::string>&,
                                   const std::string&);
template Option Command::AddOption(const std::string&, std::vector<uint32_t>&, const std::string&);
template Option Command::AddOption(const std::string&, std::vector<double>&, const std::string&);

Option Command::AddWordOption(const std::string& names,
                              const std::function<void(const std::string&)>& take,
                              const std::string& description) {
  return Option(*app_->add_option_function<std::string>(names, take, description));
}

Option Command::AddWordsOption(const std::string& names,
                               const std::function<void(const std::vector<std::string>&)>& take,
                               const std::string& description) {
  return Option(*app_->add_option_function<std::vector<std::string>>(names, take, description));
}

Option Command::AddFlag(const std::string& names, bool& value, const std::string& description) {
  return Option(*app_->add_flag(names, value, description));
}

Option Command::AddActionFlag(const std::string& names, const std::function<void()>& act,
                              const std::string& description) {
  return Option(*app_->add_flag_callback(names, act, description));
}

void Command::SetFooter(const std::string& text) { app_->footer(text); }

void Command::SetCallback(std::function<void()> callback) { app_->callback(std::move(callback)); }

std::string_view Command::Name() const { return app_->get_name(); }
std::string Command::Description() const { return app_->get_description(); }
std::string Command::Footer() const { return app_->get_footer(); }

std::vector<Option> Command::Options() const {
  std::vector<Option> options;
  for (CLI::Option* option : app_->get_options([](CLI::Option*) { return true; })) {
    options.emplace_back(*option);
  }
  return options;
}

std::optional<Option> Command::FindOption(const std::string& name) const {
  CLI::Option* const option = app_->get_option_no_throw(name);
  return option == nullptr ? std::nullopt : std::optional(Option(*option));
}

std::vector<Command> Command::Subcommands() const {
  std::vector<Command> commands;
  for (CLI::App* command : app_->get_subcommands([](CLI::App*) { return true; })) {
    commands.emplace_back(*command);
  }
  return commands;
}

Program::Program(const std::string& name, const std::string& description,
                 const std::string& version)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->set_version_flag("--version", version);
  app_->require_subcommand(1);
}

Program::~Program() = default;

ParseResult Program::Parse(int argc, const char* const* argv) {
  ParseResult result;
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& asked_for_help) {
    std::ostringstream help;
    (void)app_->exit(asked_for_help, help, help);
    result.help = help.str();
  } catch (const CLI::ParseError& error) {
    result.error = error.what();
    result.unknown_words = app_->remaining(true);
  }
  return result;
}

Command Program::Parsed() const {
  const std::vector<CLI::App*> commands = app_->get_subcommands();
  return commands.empty() ? Root() : Command(*commands.front());
}

void ThrowUsageError(const std::string& option, const std::string& what) {
  throw CLI::ValidationError(option, what);
}

void ThrowUsageError(const std::string& what) { throw CLI::ValidationError(what); }

namespace {

// Takes all behind the equals sign as one value: arrays are none of ours.
class LineReader : public CLI::ConfigBase {
 public:
  LineReader() { arrayBounds('\0', '\0')->arrayDelimiter('\0'); }
};

}  // namespace

std::vector<ConfigItem> ReadConfigLine(const std::string& line) {
  std::vector<ConfigItem> items;
  std::istringstream stream(line);
  for (CLI::ConfigItem& item : LineReader().from_config(stream)) {
    items.push_back({std::move(item.parents), std::move(item.name), std::move(item.inputs)});
  }
  return items;
}

}  // namespace xenoscope::cli
