// The lines of symbol texts: "ADDRESS [SIZE] [TYPE] NAME [MODULE]". The readers of text_symbols.h
// differ in the fields that they need and in what they do with them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "base/mode.h"
#include "symbolizer/symbol_table.h"

namespace xenoscope::symbolizer {

struct SymbolLine {
  Address address = 0;
  uint64_t size = 0;        // size in bytes; 0: not given
  char type = 0;            // letter as printed by nm; 0: not given
  std::string_view name;    // name, which may hold spaces (nm --demangle)
  std::string_view module;  // module without brackets; empty for the kernel itself
};

// The fields of a line besides address and name.
enum class LineShape : uint8_t {
  kTyped,    // ADDRESS TYPE NAME [MODULE], and nm --print-size's ADDRESS SIZE TYPE NAME
  kUntyped,  // ADDRESS NAME
};

// Parses a line; nothing when it is not of this shape. O(length).
std::optional<SymbolLine> ParseSymbolLine(std::string_view line, LineShape shape);

// Removes the hexadecimal number, with or without 0x, from the beginning of `text` and returns it;
// nothing, and `text` is unchanged, when there is no number of at most 64 bits.
std::optional<uint64_t> TakeHex(std::string_view& text);

// Calls for every line without its end, numbered from 1; a last line without an end counts too.
void ForEachLine(std::string_view text,
                 absl::FunctionRef<void(std::string_view line, uint64_t number)> use);

// Returns whether nm's letter is one of code: text and weak symbols. V, D, R, B and the like are
// data, A is absolute (in kallsyms offsets of per-CPU variables), U is undefined.
bool IsCode(char type);
Binding BindingOf(char type);

// Returns an error when most of what was read is not a list of symbols. `wanted` is the shape of a
// line, for the message.
absl::Status CheckIsSymbolText(const LineCounts& counts, std::string_view wanted);

}  // namespace xenoscope::symbolizer
