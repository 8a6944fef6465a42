#include "symbolizer/text/symbol_lines.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"

namespace xenoscope::symbolizer {
namespace {

constexpr std::string_view kBlank = " \t\r";

void SkipBlanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(kBlank), text.size()));
}

std::string_view TakeWord(std::string_view& text) {
  SkipBlanks(text);
  const std::string_view word = text.substr(0, text.find_first_of(kBlank));
  text.remove_prefix(word.size());
  return word;
}

bool IsLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// Returns whether it can be a name: in any language, but without control characters, as in binary
// data.
bool IsName(std::string_view text) {
  return !text.empty() && std::none_of(text.begin(), text.end(), [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == '\x7f';
  });
}

// Takes "[module]" from the end of `text`. It comes after a tab, or after a space when the text was
// copied by hand; C++'s operator[] is not a module.
std::string_view TakeModule(std::string_view& text) {
  if (!text.ends_with(']')) return {};
  const size_t open = text.rfind('[');
  if (open == std::string_view::npos || open == 0) return {};
  if (kBlank.find(text[open - 1]) == std::string_view::npos) return {};
  const std::string_view module = text.substr(open + 1, text.size() - open - 2);
  text = text.substr(0, open);
  return module;
}

std::string_view WithoutBlanksAtEnd(std::string_view text) {
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
}

}  // namespace

std::optional<uint64_t> TakeHex(std::string_view& text) {
  std::string_view digits = text;
  if (digits.starts_with("0x") || digits.starts_with("0X")) digits.remove_prefix(2);
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (error != std::errc()) return std::nullopt;
  text = digits.substr(static_cast<size_t>(end - digits.data()));
  return value;
}

std::optional<SymbolLine> ParseSymbolLine(std::string_view line, LineShape shape) {
  SymbolLine symbol;
  std::string_view rest = line;
  SkipBlanks(rest);
  // nm leaves the address of undefined symbols blank.
  const bool undefined = shape == LineShape::kTyped && rest.size() < line.size() &&
                         rest.size() >= 2 && rest[1] == ' ' && IsLetter(rest[0]);
  if (!undefined) {
    const auto address = TakeHex(rest);
    if (!address || rest.empty() || kBlank.find(rest[0]) == std::string_view::npos) {
      return std::nullopt;
    }
    symbol.address = *address;
  }
  if (shape == LineShape::kTyped) {
    std::string_view type = TakeWord(rest);
    if (type.size() > 1) {
      const auto size = TakeHex(type);
      if (!size || !type.empty()) return std::nullopt;
      symbol.size = *size;
      type = TakeWord(rest);
    }
    // nm prints '?' for an unknown type and '-' for stabs.
    if (type.size() != 1 || !(IsLetter(type[0]) || type[0] == '?' || type[0] == '-')) {
      return std::nullopt;
    }
    symbol.type = type[0];
  }
  SkipBlanks(rest);
  rest = WithoutBlanksAtEnd(rest);
  symbol.module = TakeModule(rest);
  symbol.name = WithoutBlanksAtEnd(rest);
  if (!IsName(symbol.name)) return std::nullopt;
  return symbol;
}

void ForEachLine(std::string_view text,
                 absl::FunctionRef<void(std::string_view line, uint64_t number)> use) {
  uint64_t number = 0;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    use(line, ++number);
  }
}

bool IsCode(char type) { return type == 'T' || type == 't' || type == 'W' || type == 'w'; }

Binding BindingOf(char type) {
  if (type == 'W' || type == 'w') return Binding::kWeak;
  return type >= 'A' && type <= 'Z' ? Binding::kGlobal : Binding::kLocal;
}

absl::Status CheckIsSymbolText(const LineCounts& counts, std::string_view wanted) {
  const uint64_t symbols = counts.functions + counts.others;
  if (symbols + counts.malformed == 0)
    return InvalidError("it is empty; lines '{}' are wanted", wanted);
  if (symbols >= counts.malformed) return absl::OkStatus();
  return InvalidError("it is not a list of symbols: {} of {} lines are not '{}', the first is {}",
                      counts.malformed, symbols + counts.malformed, wanted,
                      counts.first_malformed_at);
}

}  // namespace xenoscope::symbolizer
