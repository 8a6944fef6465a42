// The layouts of payloads: the notation of trace/event_rows.inc, which is read at compile time.
//
// A layout is fields "name:type" in the order of their bits, without gaps. A variant may begin with
// a condition on Xen's version; variants are separated by '|'. A field of the name "_" is padding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace xenoscope::trace {

enum class Event : uint16_t;

// The types of fields, as they are spelt in a layout; * below.
enum class FieldType : uint8_t {
  kPad,          // p8 p16 p24 p32: padding, of any value
  kUnsigned,     // u8 u16 u32 u64, b1 to b31: a number
  kSigned,       // i16 i32: a number
  kOptional,     // opt32: a number; -1 means none
  kBudget,       // budget: a number; the smallest possible one means none
  kHex,          // x16 x32 x64: bits or an address
  kLong,         // long: an address or register; 64 bits with TRC_64_FLAG, else 32
  kPte,          // pte: a page-table entry, of the width of kLong
  kGl1e,         // gl1e: a page-table entry of a shadowed guest; 32 bits with 2 levels, else 64
  kGva,          // gva: an address of a shadowed guest; 64 bits with 4 levels, else 32
  kDomain,       // dom: a domain in a word
  kVcpuDomain,   // vd: u16 vCPU, u16 domain
  kDomainVcpu,   // dv: u16 domain, u16 vCPU
  kDomainVcpu2,  // dom+vcpu: a word each
  kReason,       // reason: an exit reason, named by the vendor
  kHypercall,    // hypercall, hypercall20: the number of a hypercall
  kTags,         // tags: 12 bits that say which arguments of a hypercall follow
  kTrap,         // trap, trap15: an exception vector
  kCr,           // cr: the number of a control register
  kMsr,          // msr: the number of a model-specific register
  kShutdown,     // shutdown: why a domain shut down
  kIntrSource,   // intsrc: which of an HVM guest's interrupt controllers
  kP2mType,      // p2mt: the kind of a guest's page
  kShadowFlags,  // sflags, sflags29: the steps that the shadow code took, a bit each
  kArgument,     // an argument of a hypercall, made from tags and *
  kRest,         // *: what remains, as words; last
  // These are in the variant bits of the event number, not in the payload:
  kRunstates,  // runstates: old and new
  kNested,     // nested: set for a guest's own guest
  kGuestEvent  // guest: the number that a guest gave its event
};

// Whether the event number says that the field has 32 or 64 bits.
[[nodiscard]] constexpr bool WidthFollowsFromId(FieldType type) {
  return type == FieldType::kLong || type == FieldType::kPte || type == FieldType::kGl1e ||
         type == FieldType::kGva;
}

struct FieldSpec {
  std::string_view name;
  FieldType type = FieldType::kPad;
  uint8_t bits = 0;  // the width; 0 if the event number or the record's size says it
};

// A layout that the versions [from_version, before_version) of Xen write. A version is major * 100
// + minor: 4.18 is 418.
struct Variant {
  static constexpr size_t kMaxFields = 8;
  uint16_t from_version = 0;
  uint16_t before_version = 999;
  uint8_t min_words = 0;
  uint8_t max_words = 0;
  bool has_rest = false;  // the variant ends in *
  uint8_t field_count = 0;
  std::array<FieldSpec, kMaxFields> fields{};
};

struct Layout {
  static constexpr size_t kMaxVariants = 4;
  uint8_t variant_count = 0;
  uint8_t min_words = 7;
  uint8_t max_words = 0;
  std::array<Variant, kMaxVariants> variants{};
};

namespace layout_internal {

struct TypeName {
  std::string_view name;
  FieldType type;
  uint8_t bits;
};

inline constexpr TypeName kTypeNames[] = {
    {"p8", FieldType::kPad, 8},
    {"p16", FieldType::kPad, 16},
    {"p24", FieldType::kPad, 24},
    {"p32", FieldType::kPad, 32},
    {"u8", FieldType::kUnsigned, 8},
    {"u16", FieldType::kUnsigned, 16},
    {"u32", FieldType::kUnsigned, 32},
    {"u64", FieldType::kUnsigned, 64},
    {"b1", FieldType::kUnsigned, 1},
    {"b3", FieldType::kUnsigned, 3},
    {"b4", FieldType::kUnsigned, 4},
    {"i16", FieldType::kSigned, 16},
    {"i32", FieldType::kSigned, 32},
    {"opt32", FieldType::kOptional, 32},
    {"budget", FieldType::kBudget, 32},
    {"x16", FieldType::kHex, 16},
    {"x32", FieldType::kHex, 32},
    {"x64", FieldType::kHex, 64},
    {"long", FieldType::kLong, 0},
    {"pte", FieldType::kPte, 0},
    {"gl1e", FieldType::kGl1e, 0},
    {"gva", FieldType::kGva, 0},
    {"dom", FieldType::kDomain, 32},
    {"dom16", FieldType::kDomain, 16},
    {"vd", FieldType::kVcpuDomain, 32},
    {"dv", FieldType::kDomainVcpu, 32},
    {"dom+vcpu", FieldType::kDomainVcpu2, 64},
    {"reason", FieldType::kReason, 32},
    {"hypercall", FieldType::kHypercall, 32},
    {"hypercall20", FieldType::kHypercall, 20},
    {"tags", FieldType::kTags, 12},
    {"trap", FieldType::kTrap, 32},
    {"trap15", FieldType::kTrap, 15},
    {"cr", FieldType::kCr, 32},
    {"msr", FieldType::kMsr, 32},
    {"shutdown", FieldType::kShutdown, 32},
    {"intsrc", FieldType::kIntrSource, 32},
    {"p2mt", FieldType::kP2mType, 32},
    {"sflags", FieldType::kShadowFlags, 32},
    {"sflags29", FieldType::kShadowFlags, 29},
    {"*", FieldType::kRest, 0},
    {"runstates", FieldType::kRunstates, 0},
    {"nested", FieldType::kNested, 0},
    {"guest", FieldType::kGuestEvent, 0},
};

// Removes and returns the text up to the next `separator` or the end.
[[nodiscard]] constexpr std::string_view Cut(std::string_view& text, char separator) {
  const size_t at = text.find(separator);
  const std::string_view head = text.substr(0, at);
  text = at == std::string_view::npos ? std::string_view() : text.substr(at + 1);
  return head;
}

// "4.18" as 418. Anything else does not compile.
constexpr uint16_t ParseVersion(std::string_view text) {
  uint16_t parts[2] = {0, 0};
  size_t part = 0;
  for (const char c : text) {
    if (c == '.') {
      ++part;
      continue;
    }
    if (c < '0' || c > '9') throw "not a version";
    parts[part] = static_cast<uint16_t>(parts[part] * 10 + (c - '0'));
  }
  return static_cast<uint16_t>(parts[0] * 100 + parts[1]);
}

constexpr FieldSpec ParseField(std::string_view token) {
  const std::string_view name = Cut(token, ':');
  for (const TypeName& known : kTypeNames) {
    if (known.name == token) return {name, known.type, known.bits};
  }
  throw "not a type of field";
}

constexpr Variant ParseVariant(std::string_view text) {
  Variant variant;
  uint32_t min_bits = 0;
  uint32_t max_bits = 0;
  while (!text.empty()) {
    const std::string_view token = Cut(text, ' ');
    if (token.empty()) continue;
    if (token.starts_with("[<")) {
      variant.before_version = ParseVersion(token.substr(2, token.size() - 3));
      continue;
    }
    if (token.starts_with("[>=")) {
      variant.from_version = ParseVersion(token.substr(3, token.size() - 4));
      continue;
    }
    const FieldSpec field = ParseField(token);
    if (field.bits % 32 != 0 && min_bits % 32 + field.bits > 32) throw "a field across words";
    variant.fields[variant.field_count++] = field;
    variant.has_rest = field.type == FieldType::kRest;
    min_bits += field.bits;
    max_bits += field.bits;
    if (WidthFollowsFromId(field.type)) {
      min_bits += 32;
      max_bits += 64;
    }
  }
  if (min_bits % 32 != 0 || min_bits > 224 || max_bits > 224) throw "not whole words";
  variant.min_words = static_cast<uint8_t>(min_bits / 32);
  variant.max_words = variant.has_rest ? 7 : static_cast<uint8_t>(max_bits / 32);
  return variant;
}

}  // namespace layout_internal

// Reads a layout; a mistake in it does not compile.
constexpr Layout ParseLayout(std::string_view text) {
  Layout layout;
  do {
    const Variant variant = layout_internal::ParseVariant(layout_internal::Cut(text, '|'));
    layout.variants[layout.variant_count++] = variant;
    layout.min_words = variant.min_words < layout.min_words ? variant.min_words : layout.min_words;
    layout.max_words = variant.max_words > layout.max_words ? variant.max_words : layout.max_words;
  } while (!text.empty());
  return layout;
}

// Returns the layout of the event's payload.
const Layout& LayoutOf(Event event) noexcept;

}  // namespace xenoscope::trace
