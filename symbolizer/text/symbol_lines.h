// The lines of symbol texts: "ADDRESS [SIZE] [TYPE] NAME [MODULE]". The readers of text_symbols.h
// differ in which of the fields they want and in what they do with them.
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
  uint64_t size = 0;        // 0: not said
  char type = 0;            // nm's letter, 0: not said
  std::string_view name;    // may hold spaces (nm --demangle)
  std::string_view module;  // without brackets; empty for the kernel's own
};

// Which fields are there besides address and name.
enum class LineShape : uint8_t {
  kTyped,    // ADDRESS TYPE NAME [MODULE], and nm --print-size's ADDRESS SIZE TYPE NAME
  kUntyped,  // ADDRESS NAME
};

// Nothing when the line is not of this shape. O(length).
std::optional<SymbolLine> ParseSymbolLine(std::string_view line, LineShape shape);

// The number at the beginning of `text`, in hexadecimal with or without 0x, which is removed from
// it; nothing, and `text` as it was, when there is none of at most 64 bits.
std::optional<uint64_t> TakeHex(std::string_view& text);

// Calls for every line without its end, numbered from 1; a last line without an end counts too.
void ForEachLine(std::string_view text,
                 absl::FunctionRef<void(std::string_view line, uint64_t number)> use);

// nm's letters: text and weak symbols. V, D, R, B and the like are data, A is absolute (in kallsyms
// offsets of per-CPU variables), U is undefined.
bool IsCode(char type);
Binding BindingOf(char type);

// An error when what was read is not a list of symbols: nothing but junk, or most of it. `wanted`
// is the shape of a line for the message.
absl::Status CheckIsSymbolText(const LineCounts& counts, std::string_view wanted);

}  // namespace xenoscope::symbolizer
