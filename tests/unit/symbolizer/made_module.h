// A module of a kernel for tests, by the assembler: two sections with code, and ORC as Linux's
// objtool makes it, with a relocation of each address against its section.
#pragma once

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/mode.h"

namespace xenoscope::symbolizer {

// Offsets in the module's sections.
inline constexpr Address kSubmit = 0;       // of .text: `submit`, which pushes nothing
inline constexpr Address kTransfer = 0x40;  // of .text: `transfer`, which has pushed a word
inline constexpr Address kFail = 0x10;      // of .text.unlikely: `fail`, as `submit`

// Its source, for a module of this name. The name of `twice` is in both sections.
inline std::string SourceOfModule(std::string_view name, std::string_view more = "") {
  return fmt::format(R"(
      .section .modinfo, "a"
      .asciz "license=GPL"
      .asciz "name={}"
      .text
      .type submit, @function
      submit: .fill 0x40, 1, 0x90
      .type transfer, @function
      transfer: .fill 0x20, 1, 0x90
      twice: .fill 0x20, 1, 0x90
      text_end:
      .section .text.unlikely, "ax"
      .balign 16
      twice2: .fill 0x10, 1, 0x90
      .type fail, @function
      fail: .fill 0x10, 1, 0x90
      unlikely_end:
      .section .init.text, "ax"
      start: .fill 0x10, 1, 0x90
      .section .orc_unwind_ip, "a"
      .long .text - ., .text + 0x40 - ., .text + 0x60 - ., .text + 0x80 - .
      .long .text.unlikely + 0x10 - ., .text.unlikely + 0x20 - ., .init.text - .
      .section .orc_unwind, "a"
      .short 8, 0, 0x205    # sp + 8, a call
      .short 16, 0, 0x205
      .short 8, 0, 0x205
      .short 0, 0, 0x000    # the end of the section
      .short 8, 0, 0x205
      .short 0, 0, 0x000
      .short 8, 0, 0x205
      {}
    )",
                     name, more);
}

// Writes the source's object file. False: there is no assembler.
inline bool AssembleModule(const std::filesystem::path& file, const std::string& source) {
  std::filesystem::create_directories(file.parent_path());
  const std::string text = file.string() + ".S";
  std::ofstream(text) << source;
  const int status =
      std::system(fmt::format("gcc -c {0} -o {1} && rm {0}", text, file.string()).c_str());
  return status == 0;
}

}  // namespace xenoscope::symbolizer
