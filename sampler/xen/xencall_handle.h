// Hypercalls by Xen's library libxencall, which is loaded when it is first needed: what reads
// recordings works where Xen's libraries are not installed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"

namespace xenoscope::sampler {

// Returns the address of memory for Xen.
inline uint64_t XenAddressOf(const void* memory) {
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the hypercall's ABI
  return reinterpret_cast<uint64_t>(memory);
}

class XencallHandle {
 public:
  // Errors: NotFound: the library is not installed; the errno of /dev/xen/privcmd; Unimplemented:
  // built without Xen's headers.
  static absl::StatusOr<std::unique_ptr<XencallHandle>> Open();
  XencallHandle(const XencallHandle&) = delete;
  XencallHandle& operator=(const XencallHandle&) = delete;
  ~XencallHandle();

  // Returns memory that Xen may read and write, which lives as long as this; null: there is none.
  void* Allocate(size_t bytes);
  // Makes hypercall `number` (base/hypercalls.h). Returns its result, or -errno.
  int Call(uint32_t number, uint64_t argument);
  int Call(uint32_t number, uint64_t first, uint64_t second);

 private:
  class Library;
  explicit XencallHandle(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library_;
  std::vector<void*> buffers_;
};

}  // namespace xenoscope::sampler
