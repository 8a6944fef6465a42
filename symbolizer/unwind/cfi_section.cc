#include "symbolizer/unwind/cfi_section.h"

#include <dwarf.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "symbolizer/dwarf/dwarf_cursor.h"

namespace xenoscope::symbolizer {
namespace {

constexpr uint8_t kFormatBits = 0x0f;
constexpr uint8_t kApplicationBits = 0x70;
constexpr uint64_t kReturnColumn = 16;  // psABI
constexpr uint32_t kLongForm = 0xffff'ffff;
// Limit of the letters that say what a common part has; compilers write five at most.
constexpr uint64_t kMaxLetters = 16;

// Reads a pointer of an encoding DW_EH_PE_*. `at` is the address of the bytes that the cursor
// reads. False: it is damaged, or relative to something else than itself, as pointers to data only
// are.
bool ReadPointer(DwarfCursor& cursor, uint8_t encoding, Address at, Address& value) {
  at += cursor.offset();
  switch (encoding & kFormatBits) {
    case DW_EH_PE_absptr:
    case DW_EH_PE_udata8:
    case DW_EH_PE_sdata8:
      value = cursor.Take<uint64_t>();
      break;
    case DW_EH_PE_udata2:
      value = cursor.Take<uint16_t>();
      break;
    case DW_EH_PE_udata4:
      value = cursor.Take<uint32_t>();
      break;
    case DW_EH_PE_sdata2:
      value = static_cast<uint64_t>(int64_t{cursor.Take<int16_t>()});
      break;
    case DW_EH_PE_sdata4:
      value = static_cast<uint64_t>(int64_t{cursor.Take<int32_t>()});
      break;
    case DW_EH_PE_uleb128:
      value = cursor.Uleb();
      break;
    case DW_EH_PE_sleb128:
      value = static_cast<uint64_t>(cursor.Sleb());
      break;
    default:
      return false;
  }
  const uint8_t application = encoding & kApplicationBits;
  if (application == DW_EH_PE_pcrel) value += at;
  const bool known = application == DW_EH_PE_absptr || application == DW_EH_PE_pcrel;
  return known && (encoding & DW_EH_PE_indirect) == 0 && !cursor.failed();
}

class Reader {
 public:
  explicit Reader(const CfiSection& section) : section_(section) {}

  uint64_t ForEach(absl::FunctionRef<void(const CfiFunction&)> use) {
    uint64_t at = 0;
    while (const std::optional<Entry> entry = EntryAt(at)) {
      at = entry->end;
      if (entry->is_common || entry->content.empty()) continue;
      if (const std::optional<CfiFunction> function = ReadFunction(*entry)) use(*function);
    }
    return left_out_;
  }

 private:
  // An entry; `content` begins behind its id.
  struct Entry {
    Bytes content;
    uint64_t content_at = 0;  // offset of the content in the section
    uint64_t id_at = 0;
    uint64_t id = 0;
    bool is_common = false;
    uint64_t end = 0;  // offset of the next entry
  };

  std::optional<Entry> EntryAt(uint64_t offset) {
    if (offset >= section_.bytes.size()) return std::nullopt;
    DwarfCursor cursor(section_.bytes, offset);
    uint64_t length = cursor.Take<uint32_t>();
    const bool is_long = length == kLongForm;
    if (is_long) length = cursor.Take<uint64_t>();
    if (cursor.failed() || length > cursor.left()) {
      ++left_out_;
      return std::nullopt;  // where the next entry begins is not known
    }
    Entry entry;
    entry.end = cursor.offset() + length;
    if (length == 0) return entry;  // a terminator; linkers leave some in the middle
    entry.id_at = cursor.offset();
    const bool long_id = is_long && !section_.is_eh_frame;
    entry.id = long_id ? cursor.Take<uint64_t>() : cursor.Take<uint32_t>();
    if (cursor.failed() || cursor.offset() > entry.end) {
      ++left_out_;
      return entry;
    }
    const uint64_t common_id = long_id ? ~uint64_t{0} : uint64_t{kLongForm};
    entry.is_common = entry.id == (section_.is_eh_frame ? 0 : common_id);
    entry.content_at = cursor.offset();
    entry.content = section_.bytes.subspan(entry.content_at, entry.end - entry.content_at);
    return entry;
  }

  // Returns the common part at the offset; null: it is damaged.
  const CfiCommon* CommonAt(uint64_t offset) {
    const auto [known, is_new] = commons_.try_emplace(offset);
    if (is_new) {
      const std::optional<Entry> entry = EntryAt(offset);
      if (entry && entry->is_common) {
        if (std::optional<CfiCommon> read = ReadCommon(*entry)) {
          known->second = std::make_unique<CfiCommon>(*read);
        }
      }
    }
    return known->second.get();
  }

  std::optional<CfiCommon> ReadCommon(const Entry& entry) const {
    CfiCommon common;
    DwarfCursor cursor(entry.content);
    const uint8_t version = cursor.U8();
    const Bytes rest = cursor.Rest();
    DwarfCursor letters(rest.first(std::min(rest.size(), kMaxLetters + 1)));
    const std::string_view augmentation = letters.Text();
    if (letters.failed()) return std::nullopt;
    cursor.Skip(letters.offset());
    if (version != 1 && version != 3 && version != 4) return std::nullopt;
    if (!augmentation.empty() && augmentation.front() != 'z') return std::nullopt;
    if (version == 4 && (cursor.U8() != sizeof(Address) || cursor.U8() != 0)) return std::nullopt;
    common.code_alignment = cursor.Uleb();
    common.data_alignment = cursor.Sleb();
    const uint64_t column = version == 1 ? cursor.U8() : cursor.Uleb();
    if (column != kReturnColumn) return std::nullopt;
    if (!augmentation.empty()) {
      common.has_augmentation_data = true;
      const uint64_t size = cursor.Uleb();
      if (cursor.failed() || size > cursor.left()) return std::nullopt;
      if (!ReadAugmentation(augmentation.substr(1), cursor.Rest().first(size), common)) {
        return std::nullopt;
      }
      cursor.Skip(size);
    }
    if (cursor.failed()) return std::nullopt;
    common.instructions = cursor.Rest();
    return common;
  }

  static bool ReadAugmentation(std::string_view letters, Bytes data, CfiCommon& common) {
    DwarfCursor cursor(data);
    for (const char letter : letters) {
      switch (letter) {
        case 'R':
          common.pointer_encoding = cursor.U8();
          break;
        case 'S':
          common.is_signal_frame = true;
          break;
        case 'L':
          cursor.U8();
          break;
        case 'P': {
          const uint8_t encoding = cursor.U8();
          Address personality = 0;
          // Only its size matters.
          if (!ReadPointer(cursor, encoding & kFormatBits, 0, personality)) return false;
          break;
        }
        default:
          return false;
      }
    }
    return !cursor.failed();
  }

  std::optional<CfiFunction> ReadFunction(const Entry& entry) {
    CfiFunction function;
    if (!section_.is_eh_frame) {
      function.common = CommonAt(entry.id);
    } else if (entry.id <= entry.id_at) {
      function.common = CommonAt(entry.id_at - entry.id);
    }
    if (function.common == nullptr) {
      ++left_out_;
      return std::nullopt;
    }
    DwarfCursor cursor(entry.content);
    const uint8_t encoding = section_.is_eh_frame ? function.common->pointer_encoding : 0;
    uint64_t length = 0;
    const Address at = section_.address + entry.content_at;
    if (!ReadPointer(cursor, encoding, at, function.begin) ||
        !ReadPointer(cursor, encoding & kFormatBits, 0, length)) {
      ++left_out_;
      return std::nullopt;
    }
    if (function.common->has_augmentation_data) cursor.Skip(cursor.Uleb());
    if (cursor.failed() || length > ~function.begin) {
      ++left_out_;
      return std::nullopt;
    }
    // The linker leaves entries of functions that it dropped, at address 0.
    if (function.begin == 0 || length == 0) return std::nullopt;
    function.end = function.begin + length;
    function.instructions = cursor.Rest();
    return function;
  }

  const CfiSection& section_;
  absl::flat_hash_map<uint64_t, std::unique_ptr<CfiCommon>> commons_;  // by offset
  uint64_t left_out_ = 0;
};

}  // namespace

uint64_t ForEachCfiFunction(const CfiSection& section,
                            absl::FunctionRef<void(const CfiFunction&)> use) {
  return Reader(section).ForEach(use);
}

}  // namespace xenoscope::symbolizer
