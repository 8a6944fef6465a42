// The numbers that keys of sums have where a store packs them. Each back end says where the names
// of the keys are.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "store/slice.h"

namespace xenoscope::store {

// The number of a key where it is kept. They begin at 1; 0 is for kAllVcpus and kAllContexts.
using EntryId = uint32_t;
inline constexpr EntryId kMaxEntryId = (EntryId{1} << 26) - 1;

// Writes keys of a dictionary.
class KeyWriter {
 public:
  virtual ~KeyWriter() = default;
  // Return the number, of a new entry where there is none yet. Errors: ResourceExhausted if there
  // are more than kMaxEntryId.
  virtual absl::StatusOr<EntryId> IdOf(const std::string& name) = 0;
  virtual absl::StatusOr<EntryId> IdOf(VcpuNumber vcpu) = 0;
  virtual absl::StatusOr<EntryId> IdOf(ContextNumber context) = 0;
  virtual absl::StatusOr<EntryId> IdOf(CodeNumber code) = 0;
};

// Reads keys into a dictionary.
class KeyReader {
 public:
  virtual ~KeyReader() = default;
  // Read the entry with this number. Errors (InvalidArgument): there is none, or it is not as it
  // must be.
  virtual absl::Status Read(EntryId id, std::string& name) = 0;
  template <typename Number>
  absl::Status Read(EntryId id, Number& number) {
    const std::vector<Number>& known = Known<Number>();
    if (id >= known.size() || known[id].value == kUnknown) [[unlikely]]
      return Find(id, number);
    number = known[id];
    return absl::OkStatus();
  }

 protected:
  // An entry that has not been looked up yet. No dictionary has so many.
  static constexpr uint32_t kUnknown = ~uint32_t{1};

  KeyReader() { Forget(); }
  KeyReader(const KeyReader&) = default;
  KeyReader(KeyReader&&) = default;
  KeyReader& operator=(const KeyReader&) = default;
  KeyReader& operator=(KeyReader&&) = default;

  // Forgets all numbers but those of kAllVcpus and kAllContexts.
  void Forget() {
    Known<VcpuNumber>().assign(1, kAllVcpus);
    Known<ContextNumber>().assign(1, kAllContexts);
    Known<CodeNumber>().assign(1, {kUnknown});
  }
  // The numbers that are known already, by EntryId.
  template <typename Number>
  std::vector<Number>& Known() {
    return std::get<std::vector<Number>>(known_);
  }

 private:
  // As Read, of an entry that is not known yet.
  virtual absl::Status Find(EntryId id, VcpuNumber& vcpu) = 0;
  virtual absl::Status Find(EntryId id, ContextNumber& context) = 0;
  virtual absl::Status Find(EntryId id, CodeNumber& code) = 0;

  std::tuple<std::vector<VcpuNumber>, std::vector<ContextNumber>, std::vector<CodeNumber>> known_;
};

}  // namespace xenoscope::store
