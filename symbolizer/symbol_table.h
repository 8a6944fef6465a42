// What a reader of symbols found, before it is made into an index: functions in the reader's order,
// and the addresses that no function without a size of its own runs across.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/mode.h"

namespace xenoscope::symbolizer {

// How a symbol is bound; a later one is the better name for an address that has several.
enum class Binding : uint8_t { kLocal, kWeak, kGlobal };

struct Symbol {
  Address address = 0;
  uint64_t size = 0;           // 0: unknown
  std::string_view name = {};  // into the reader's input, or SymbolTable::made_names
  Binding binding = Binding::kLocal;
  uint32_t image = 0;  // index into SymbolTable::images
};

// What became of the lines of a text or the symbols of an ELF file: nothing is passed over in
// silence.
struct LineCounts {
  uint64_t functions = 0;
  uint64_t others = 0;              // data, absolute and undefined symbols
  uint64_t malformed = 0;           // what is no symbol, or a damaged one
  uint64_t first_malformed_at = 0;  // number of the first of these, from 1

  void Malformed(uint64_t number) {
    if (malformed++ == 0) first_malformed_at = number;
  }
};

struct SymbolTable {
  std::vector<std::string> images;
  std::vector<Symbol> functions;
  std::vector<Address> ends;
  LineCounts lines;
  // Names that the input does not have; copies of the table share them.
  std::shared_ptr<std::deque<std::string>> made_names = std::make_shared<std::deque<std::string>>();
  std::optional<Address> stext;  // of _stext or _text: what KASLR moves is measured by it
  std::optional<Address> etext;  // of _etext

  // Adds a function, or, for the linker script's marks of ends of text, an end.
  void AddCode(const Symbol& symbol);
};

}  // namespace xenoscope::symbolizer
