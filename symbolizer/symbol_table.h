// What a reader of symbols found, before an index is built from it: functions in the reader's
// order, and the addresses at which functions without a size end at the latest.
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

// The binding of a symbol; of several names for an address the one with the highest binding is
// used.
enum class Binding : uint8_t { kLocal, kWeak, kGlobal };

struct Symbol {
  Address address = 0;
  uint64_t size = 0;           // size in bytes; 0: unknown
  std::string_view name = {};  // name, in the reader's input or in SymbolTable::made_names
  Binding binding = Binding::kLocal;
  uint32_t image = 0;  // index into SymbolTable::images
};

// The accounting of the lines of a text, or of the symbols of an ELF file: nothing is passed over
// without being counted.
struct LineCounts {
  uint64_t functions = 0;
  uint64_t others = 0;              // data, absolute and undefined symbols
  uint64_t malformed = 0;           // lines that are no symbol, and damaged symbols
  uint64_t first_malformed_at = 0;  // number of the first malformed one, from 1

  void Malformed(uint64_t number) {
    if (malformed++ == 0) first_malformed_at = number;
  }
};

struct SymbolTable {
  std::vector<std::string> images;
  std::vector<Symbol> functions;
  std::vector<Address> ends;
  LineCounts lines;
  // The names that the input does not have; copies of the table share them.
  std::shared_ptr<std::deque<std::string>> made_names = std::make_shared<std::deque<std::string>>();
  std::optional<Address> stext;  // address of _stext or _text, by which KASLR's shift is measured
  std::optional<Address> etext;  // address of _etext

  // Adds a function; or an end, for the linker script's marks of ends of text.
  void AddCode(const Symbol& symbol);
};

}  // namespace xenoscope::symbolizer
