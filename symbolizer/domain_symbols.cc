#include "symbolizer/domain_symbols.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/xen_address.h"
#include "symbolizer/demangle.h"
#include "symbolizer/kaslr_shift.h"

namespace xenoscope::symbolizer {
namespace {

constexpr std::string_view kUnknownImage = "[unknown]";

// The layout of x86-64's address space (Documentation/arch/x86/x86_64/mm.rst).
constexpr Address kHighHalf = 0xffff'8000'0000'0000;
constexpr Address kKernelBegin = 0xffff'ffff'8000'0000;  // Linux's text, wherever KASLR puts it
constexpr Address kModulesBegin = 0xffff'ffff'c000'0000;
constexpr Address kModulesEnd = 0xffff'ffff'ff00'0000;

// Xen generates a stub for the system call entries of each pCPU, in a page each below XEN_VIRT_END,
// which lies 1 GiB above Xen's link address (alloc_stub_page() in xen/arch/x86/smpboot.c).
constexpr Address kXenRange = Address{1} << 30;
constexpr Address kXenStubs = 4096 * Address{4096};  // a page for each of the most pCPUs

bool IsXenStub(Address address, Address xen_text) {
  const Address end = (xen_text & ~(kXenRange - 1)) + kXenRange;
  return end - kXenStubs <= address && address < end;
}

bool IsBetween(Address address, Address begin, Address end) {
  return begin <= address && address < end;
}

// A function that each kernel with ORC has.
constexpr std::string_view kOrcFunction = "__orc_find";

// Returns whether a function of Linux with this name calls or jumps to where a register points, in
// place of such an instruction (arch/x86/lib/retpoline.S). Several names lie at one address.
bool IsThunk(std::string_view name) {
  return name.starts_with("__x86_indirect_") || name.starts_with("__indirect_thunk_");
}

// Returns whether Linux made the code with this name from a BPF program, or as a trampoline to one:
// its first instructions set the frame pointer (emit_prologue in arch/x86/net/bpf_jit_comp.c).
bool IsBpf(std::string_view name) {
  return name.starts_with("bpf_prog_") || name.starts_with("bpf_trampoline_");
}

// Returns the module that is the image of such a name in kallsyms, "[NAME]"; empty: it is the
// kernel itself, or code that the kernel made (BPF programs, trampolines of ftrace and kprobes).
std::string ModuleOf(std::string_view image) {
  if (!image.starts_with('[') || !image.ends_with(']')) return {};
  const std::string_view name = image.substr(1, image.size() - 2);
  return name == "bpf" || name.starts_with("__builtin__") ? std::string() : std::string(name);
}

bool HasOrc(const ImageFile& file) { return !file.elf().Section(".orc_unwind").empty(); }

// Returns what an address in no image's text may be, or nothing.
std::string_view Explanation(Mode mode, Address address, bool only_kernel) {
  switch (mode) {
    case Mode::kXen:
      return "; it may be in a livepatch, of which there is no list (xl debug-keys x)";
    case Mode::kUser:
      return address >= kHighHalf ? "; it is an address of the kernel" : "";
    case Mode::kKernel:
      if (address < kHighHalf)
        return "; it is a low address: firmware, early boot, or a stale one of "
               "user mode (HVM guests on AMD, Xen 4.11 to 4.21)";
      if (IsXenAddress(address)) return "; it is an address of Xen";
      if (only_kernel && IsBetween(address, kModulesBegin, kModulesEnd)) {
        return "; it is in the area of modules, whose symbols only /proc/kallsyms has";
      }
      if (IsBetween(address, kKernelBegin, kModulesBegin)) {
        return "; KASLR moves the kernel at every boot: give the /proc/kallsyms of the recorded "
               "boot";
      }
      return "";
  }
  return "";
}

std::string NameOf(DomainId domain) {
  return domain == kEveryDomain ? "any domain" : ToString(domain);
}

std::string SpaceName(DomainId domain, Mode mode) {
  if (mode == Mode::kXen) return "Xen";
  return fmt::format("{}'s {}", ToString(domain), mode == Mode::kUser ? "user mode" : "kernel");
}

}  // namespace

uint32_t DomainSymbols::SpaceKey(DomainId domain, Mode mode) {
  const uint32_t of_domain = mode == Mode::kXen ? 0 : domain.value;
  return of_domain << 8 | static_cast<uint32_t>(mode);
}

void DomainSymbols::Add(DomainId domain, Mode mode, std::shared_ptr<const SymbolIndex> symbols,
                        Address bias, std::string origin) {
  const uint32_t count = symbols->size();
  spaces_[SpaceKey(domain, mode)].images.push_back(
      {std::move(symbols), bias, std::move(origin), std::vector<FunctionId>(count, kNotResolved)});
  std::fill(memos_.begin(), memos_.end(), Memo{});
}

void DomainSymbols::AddFile(DomainId domain, Mode mode, std::shared_ptr<ImageFile> file,
                            Address bias) {
  spaces_[SpaceKey(domain, mode)].files.push_back({std::move(file), bias});
}

void DomainSymbols::AddPart(DomainId domain, Mode mode, std::string image, Address begin,
                            Address end, std::string why) {
  spaces_[SpaceKey(domain, mode)].parts.push_back({std::move(image), begin, end, std::move(why)});
}

bool DomainSymbols::AnyMayBeRelocated() const {
  return std::ranges::any_of(spaces_,
                             [](const auto& space) { return space.second.may_be_relocated; });
}

std::optional<std::string> DomainSymbols::FindShift(DomainId domain,
                                                    std::span<const Address> sampled) {
  const Space of_all = SpaceOf(domain, Mode::kKernel);
  if (!of_all.may_be_relocated || of_all.images.empty() || of_all.files.empty())
    return std::nullopt;
  const auto is_text = [](Address address) {
    return IsBetween(address, kKernelBegin, kModulesBegin);
  };
  std::vector<Address> in_text;
  std::ranges::copy_if(sampled, std::back_inserter(in_text), is_text);
  if (in_text.empty()) return std::nullopt;
  const std::string& image = of_all.images.front().symbols->image();
  const auto found =
      FindKaslrShift(*of_all.files.front().file, *of_all.images.front().symbols, in_text);
  if (!found.ok()) {
    return fmt::format("{}'s kernel, of which only {} is known: {}", NameOf(domain), image,
                       Message(found.status()));
  }
  if (found->shift == 0) return std::nullopt;
  // Of this kernel's own symbols only: other files were moved already.
  Space& space = spaces_[SpaceKey(domain, Mode::kKernel)];
  space = of_all;
  space.may_be_relocated = false;
  for (Image& moved : space.images) moved.bias += found->shift;
  for (File& moved : space.files) moved.bias += found->shift;
  std::fill(memos_.begin(), memos_.end(), Memo{});
  return fmt::format(
      "{}'s kernel was moved by {:#x}: then {} of {} sampled addresses are instructions of {}, and "
      "with no other shift",
      NameOf(domain), found->shift, found->fitting, found->addresses, image);
}

void DomainSymbols::SetMissingReason(DomainId domain, Mode mode, std::string_view reason) {
  spaces_[SpaceKey(domain, mode)].missing_reason = std::string(reason);
  std::fill(memos_.begin(), memos_.end(), Memo{});
}

FunctionId DomainSymbols::Resolve(DomainId domain, Mode mode, Address address) {
  if (const auto end = ChainEndAt(address)) return EndOfChain(*end);
  const uint32_t key = SpaceKey(domain, mode);
  // Fibonacci hashing: the upper bits of the product depend on all bits of the address.
  const uint64_t hash = (address + key) * 0x9e37'79b9'7f4a'7c15;
  Memo& memo = memos_[hash >> 51];
  static_assert(kMemos == size_t{1} << (64 - 51));
  if (memo.address != address || memo.space != key) {
    memo = {address, key, ResolveIn(domain, mode, SpaceOf(domain, mode), address)};
  }
  return memo.function;
}

FunctionId DomainSymbols::ResolveInProcess(DomainId domain, AddressSpaceId space, Address address) {
  if (const auto end = ChainEndAt(address)) return EndOfChain(*end);
  if (!processes_.Knows(space, address)) return Resolve(domain, Mode::kUser, address);
  const Function function = processes_.Find(space, address);
  if (!function.unresolved.empty() && processes_.IsPartial(space) &&
      SpaceOf(domain, Mode::kUser).files.empty()) {
    // Lists of functions say nothing of the build that they are of.
    const FunctionId listed = Resolve(domain, Mode::kUser, address);
    if (Describe(listed).unresolved.empty()) return listed;
  }
  return Intern(function.image, function.name, function.unresolved);
}

FunctionId DomainSymbols::ResolveNested(DomainId domain, Mode /*mode*/, Address /*address*/) {
  return Intern("[nested guest]", "[no symbols]",
                fmt::format("it is code of a guest that d{} runs itself", domain.value));
}

DomainSymbols::Space& DomainSymbols::SpaceOf(DomainId domain, Mode mode) {
  Space& own = spaces_[SpaceKey(domain, mode)];
  if (!own.images.empty()) return own;
  const auto of_all = spaces_.find(SpaceKey(kEveryDomain, mode));
  return of_all == spaces_.end() ? own : of_all->second;
}

FunctionId DomainSymbols::ResolveIn(DomainId domain, Mode mode, Space& space, Address address) {
  const bool in_kernel_area =
      mode == Mode::kKernel && IsBetween(address, kKernelBegin, kModulesBegin);
  if (in_kernel_area) ++space.in_kernel_area;
  Image* holder = nullptr;
  uint32_t symbol = SymbolIndex::kNoSymbol;
  for (Image& image : space.images) {
    const uint32_t found = image.symbols->Find(address - image.bias);
    if (found == SymbolIndex::kNoSymbol) continue;
    if (holder != nullptr) {
      return Intern(
          kUnknownImage, "[ambiguous]",
          fmt::format("{} and {} of {} both have a function there", holder->symbols->image(),
                      image.symbols->image(), SpaceName(domain, mode)));
    }
    holder = &image;
    symbol = found;
    if (mode != Mode::kUser) break;
  }
  if (holder == nullptr) {
    if (in_kernel_area) ++space.in_kernel_area_unresolved;
    return Unresolved(domain, mode, space, address);
  }
  FunctionId& function = holder->functions[symbol];
  if (function == kNotResolved) {
    function = Intern(holder->symbols->Image(symbol), Demangled(holder->symbols->Name(symbol)), "");
  }
  return function;
}

FunctionId DomainSymbols::EndOfChain(ChainEnd end) {
  return Intern(kUnknownImage, NameOf(end),
                "it stands for callers that are not known: the notes say why");
}

FunctionId DomainSymbols::Unresolved(DomainId domain, Mode mode, const Space& space,
                                     Address address) {
  for (const Part& part : space.parts) {
    if (IsBetween(address, part.begin, part.end)) return Intern(part.image, "[gap]", part.why);
  }
  if (space.images.empty()) {
    return Intern(kUnknownImage, "[no symbols]",
                  fmt::format("no symbols for {}{}{}", SpaceName(domain, mode),
                              space.missing_reason.empty() ? "" : ": ", space.missing_reason));
  }
  for (const Image& image : space.images) {
    const Address linked = address - image.bias;
    if (IsBetween(linked, image.symbols->begin(), image.symbols->end())) {
      return Intern(image.symbols->image(), "[gap]",
                    fmt::format("between the functions of {} in {}{}", image.symbols->image(),
                                SpaceName(domain, mode),
                                Explanation(mode, address, !image.symbols->HasSeveralImages())));
    }
  }
  const Image& first = space.images.front();
  if (mode == Mode::kXen && IsXenStub(address, first.symbols->begin())) {
    return Intern(first.symbols->image(), "[stub]",
                  "code that Xen generated for system calls of PV guests");
  }
  const bool below = address - first.bias < first.symbols->begin();
  return Intern(
      kUnknownImage, "[outside]",
      fmt::format("{} function of {} in {}{}{}", below ? "before the first" : "after the last",
                  first.symbols->image(), SpaceName(domain, mode),
                  space.images.size() > 1 ? ", and in no other of its images" : "",
                  Explanation(mode, address, !first.symbols->HasSeveralImages())));
}

FunctionId DomainSymbols::Intern(std::string_view image, std::string_view name,
                                 std::string_view unresolved) {
  // No part holds a zero byte, so it separates them.
  std::string key = fmt::format("{}{}{}{}{}", image, '\0', name, '\0', unresolved);
  const auto next = FunctionId{static_cast<uint32_t>(functions_.size())};
  const auto [found, is_new] = ids_.try_emplace(std::move(key), next);
  if (is_new) {
    functions_.push_back({std::string(image), std::string(name), std::string(unresolved)});
  }
  return found->second;
}

std::optional<CodeLocation> DomainSymbols::LocationOf(DomainId domain, Mode mode,
                                                      AddressSpaceId space, Address address) {
  if (mode == Mode::kUser && processes_.Knows(space, address)) {
    return processes_.LocationOf(space, address);
  }
  // The location of an ambiguous address would be that in the first named program.
  if (!Describe(Resolve(domain, mode, address)).unresolved.empty()) return std::nullopt;
  const Space& own = SpaceOf(domain, mode);
  for (const Image& image : own.images) {
    const uint32_t symbol = image.symbols->Find(address - image.bias);
    if (symbol == SymbolIndex::kNoSymbol) continue;
    CodeLocation place;
    place.address = address;
    place.function_begin = image.symbols->Start(symbol) + image.bias;
    place.function_end = image.symbols->End(symbol) + image.bias;
    if (mode == Mode::kKernel) {
      if (const auto in_module = ModuleLocation(domain, {&image, symbol}, address)) {
        place.file = in_module->file;
        place.address = in_module->address;
        place.function_begin += in_module->address - address;
        place.function_end += in_module->address - address;
        return place;
      }
    }
    for (const File& candidate : own.files) {
      // The first file that knows the line, or has the code, is used.
      const Address bias = candidate.bias;
      DebugInfo* debug_info = candidate.file->debug_info();
      if ((debug_info == nullptr || debug_info->FramesAt(address - bias).empty()) &&
          candidate.file->CodeAt(address - bias, 1).empty()) {
        continue;
      }
      place.file = candidate.file.get();
      place.address -= bias;
      place.function_begin -= bias;
      place.function_end -= bias;
      break;
    }
    return place;
  }
  return std::nullopt;
}

DomainSymbols::Place DomainSymbols::PlaceAt(DomainId domain, Mode mode, Address address) {
  for (const Image& image : SpaceOf(domain, mode).images) {
    const uint32_t symbol = image.symbols->Find(address - image.bias);
    if (symbol != SymbolIndex::kNoSymbol) return {&image, symbol};
  }
  return {};
}

std::string_view DomainSymbols::NameAt(DomainId domain, Mode mode, Address address) {
  const Place place = PlaceAt(domain, mode, address);
  return place.image == nullptr ? "" : place.image->symbols->Name(place.symbol);
}

const DomainSymbols::File* DomainSymbols::KernelWithOrc(DomainId domain) {
  for (const File& kernel : SpaceOf(domain, Mode::kKernel).files) {
    if (HasOrc(*kernel.file)) return &kernel;
  }
  return nullptr;
}

UnwindCode DomainSymbols::KernelCodeAt(DomainId domain, Address address) {
  if (address < kHighHalf) return {.entered_kernel = true};
  UnwindCode code{.frame_pointers = false};
  const bool is_in_area = IsBetween(address, kModulesBegin, kModulesEnd);
  const File* const kernel = is_in_area ? nullptr : KernelWithOrc(domain);
  if (kernel != nullptr) {
    code.table = kernel->file->unwind_table();
    code.address = address - kernel->bias;
    code.is_thunk = IsThunk(NameAt(domain, Mode::kKernel, address));
    code.mapped = code.is_thunk ||
                  (code.table != nullptr && code.table->Find(code.address) != UnwindTable::kNoRow);
    if (code.mapped) return code;
  }
  // A kernel without KASLR has its modules below that area.
  if (const auto of_module = ModuleCodeAt(domain, address)) return *of_module;
  if (is_in_area) {
    code.mapped = true;
    code.frame_pointers = IsBpf(NameAt(domain, Mode::kKernel, address));
  }
  return code;
}

const ModuleKernel& DomainSymbols::ModuleKernelOfDomain(DomainId domain) {
  const auto [kernel, is_new] = module_kernels_.try_emplace(domain);
  if (!is_new) return kernel->second;
  const File* file = KernelWithOrc(domain);
  const Space& own = SpaceOf(domain, Mode::kKernel);
  if (file == nullptr && !own.files.empty()) file = &own.files.front();
  if (file != nullptr) kernel->second = ModuleKernelOf(file->file->elf());
  const auto known = releases_.find(domain);
  if (kernel->second.release.empty() && known != releases_.end() &&
      IsKernelRelease(known->second)) {
    kernel->second.release = known->second;
  }
  return kernel->second;
}

bool DomainSymbols::PlaceModuleOf(DomainId domain, const Place& place) {
  const SymbolIndex& symbols = *place.image->symbols;
  const std::string& image = symbols.Image(place.symbol);
  const std::string module = ModuleOf(image);
  if (module.empty() || modules_.IsKnown(domain, module)) return false;
  // The functions of a module lie together.
  const auto is_of_module = [&](uint32_t symbol) { return symbols.Image(symbol) == image; };
  uint32_t symbol = place.symbol;
  while (symbol > 0 && is_of_module(symbol - 1)) --symbol;
  std::vector<LoadedFunction> functions;
  for (; symbol < symbols.size() && is_of_module(symbol); ++symbol) {
    functions.push_back({symbols.Name(symbol), symbols.Start(symbol) + place.image->bias});
  }
  modules_.Place(domain, module, functions, ModuleKernelOfDomain(domain),
                 {processes_.FinderOf(domain), processes_.FinderHere()});
  return true;
}

std::optional<KernelModules::Location> DomainSymbols::ModuleLocation(DomainId domain,
                                                                     const Place& place,
                                                                     Address address) {
  PlaceModuleOf(domain, place);
  return modules_.LocationOf(domain, address);
}

std::optional<UnwindCode> DomainSymbols::ModuleCodeAt(DomainId domain, Address address) {
  if (auto placed = modules_.CodeAt(domain, address)) return placed;
  const Place place = PlaceAt(domain, Mode::kKernel, address);
  if (place.image == nullptr || KernelWithOrc(domain) == nullptr) return std::nullopt;
  if (!PlaceModuleOf(domain, place)) return std::nullopt;
  return modules_.CodeAt(domain, address);
}

UnwindCode DomainSymbols::UserCodeAt(DomainId domain, AddressSpaceId space, Address address) {
  if (processes_.Knows(space, address)) return processes_.UnwindCodeAt(space, address);
  UnwindCode code;
  for (const File& file : SpaceOf(domain, Mode::kUser).files) {
    const Address linked = address - file.bias;
    if (file.file->CodeAt(linked, 1).empty()) continue;
    if (code.mapped) return {.mapped = true};  // it is not known which of them runs
    code = {true, file.file->unwind_table(), linked};
  }
  return code;
}

std::string DomainSymbols::WhyNoOrc(DomainId domain) {
  if (const File* const kernel = KernelWithOrc(domain)) {
    return kernel->file->unwind_table() != nullptr
               ? ""
               : fmt::format("the ORC of {} is damaged", kernel->file->path());
  }
  const Space& own = SpaceOf(domain, Mode::kKernel);
  if (!own.files.empty()) {
    return fmt::format("{} has no ORC (.orc_unwind)", own.files.front().file->path());
  }
  const bool built_with_orc = AddressOf(domain, Mode::kKernel, kOrcFunction) ||
                              AddressOf(kEveryDomain, Mode::kKernel, kOrcFunction);
  return built_with_orc ? "it is built with ORC and without frame pointers, and its vmlinux, which "
                          "has the ORC, was not given"
                        : "its vmlinux was not given";
}

SymbolOrigin DomainSymbols::OriginOf(DomainId domain, Mode mode, AddressSpaceId space,
                                     Address address) {
  SymbolOrigin origin;
  const FunctionId function = mode == Mode::kUser ? ResolveInProcess(domain, space, address)
                                                  : Resolve(domain, mode, address);
  origin.missing = Describe(function).unresolved;
  const std::optional<CodeLocation> place = LocationOf(domain, mode, space, address);
  if (!place) return origin;
  if (mode == Mode::kUser && processes_.Knows(space, address)) {
    origin.functions = place->file->symbols_from();
  } else {
    for (const Image& image : SpaceOf(domain, mode).images) {
      if (image.symbols->Find(address - image.bias) == SymbolIndex::kNoSymbol) continue;
      origin.functions = image.origin;
      break;
    }
  }
  if (place->file == nullptr) {
    origin.missing = "lines: an ELF file with DWARF would have them";
    return origin;
  }
  origin.build_id = place->file->elf().BuildId();
  DebugInfo* debug_info = place->file->debug_info();
  if (debug_info == nullptr) {
    origin.missing =
        fmt::format("lines: {}; its -dbg or -dbgsym package, or --debuginfod, may have it",
                    place->file->why_no_debug_file());
    return origin;
  }
  // The companions that a unit needs are known once it was read.
  const bool known = !debug_info->FramesAt(place->address).empty();
  if (known) origin.lines = place->file->debug_path();
  origin.missing = fmt::format("{}", fmt::join(debug_info->Missing(), "; "));
  if (debug_info->gave_up()) origin.missing = "its debug information is too complex to read";
  if (!known && origin.missing.empty()) origin.missing = "lines: compiled without -g";
  return origin;
}

std::optional<Address> DomainSymbols::AddressOf(DomainId domain, Mode mode,
                                                std::string_view name) const {
  const auto space = spaces_.find(SpaceKey(domain, mode));
  if (space == spaces_.end()) return std::nullopt;
  for (const Image& image : space->second.images) {
    for (uint32_t symbol = 0; symbol < image.symbols->size(); ++symbol) {
      if (image.symbols->Name(symbol) == name) return image.symbols->Start(symbol) + image.bias;
    }
  }
  return std::nullopt;
}

std::vector<Frame> DomainSymbols::Inlined(DomainId domain, Mode mode, Address address) {
  const std::optional<CodeLocation> place = LocationOf(domain, mode, {}, address);
  if (!place || place->file == nullptr || place->file->debug_info() == nullptr) return {};
  std::vector<Frame> frames;
  for (const CodeFrame& frame : place->file->debug_info()->FramesAt(place->address)) {
    frames.push_back({std::string(frame.function), {std::string(frame.file), frame.line}});
  }
  // The outermost function has one name everywhere: that of the symbol table.
  if (!frames.empty()) frames.back().function = Describe(Resolve(domain, mode, address)).name;
  return frames;
}

std::vector<std::string> DomainSymbols::Mismatches() const {
  // Between functions lie paddings and data that is executed (the hypercall page): a few percent of
  // addresses at most. A kernel that was moved misses its text nearly always.
  constexpr uint64_t kEnough = 10;
  constexpr uint64_t kPercent = 10;
  std::vector<std::string> mismatches;
  for (const auto& [key, space] : spaces_) {
    const uint64_t missed = space.in_kernel_area_unresolved;
    if (space.images.empty() || missed < kEnough ||
        missed * 100 < space.in_kernel_area * kPercent) {
      continue;
    }
    mismatches.push_back(
        fmt::format("{} of {} addresses of {}'s kernel are in no function of {}: the symbols are "
                    "of another boot, or KASLR has moved the kernel, so names may be wrong; give "
                    "the /proc/kallsyms of the recorded boot",
                    missed, space.in_kernel_area, NameOf(DomainId{static_cast<uint16_t>(key >> 8)}),
                    space.images.front().symbols->image()));
  }
  std::sort(mismatches.begin(), mismatches.end());
  // A host has hundreds of guests, which may all have been booted again.
  constexpr size_t kNamed = 3;
  if (mismatches.size() > kNamed + 1) {
    const size_t others = mismatches.size() - kNamed;
    mismatches.resize(kNamed);
    mismatches.push_back(
        fmt::format("the same is true of {} more kernels and their symbols", others));
  }
  return mismatches;
}

}  // namespace xenoscope::symbolizer
