// Pages of other domains and of Xen, mapped by Xen's library libxenforeignmemory, which is loaded
// when it is first needed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "base/ids.h"

namespace xenoscope::sampler {

class ForeignMemory {
 public:
  // Errors: NotFound: the library is not installed; the errno of /dev/xen/privcmd; Unimplemented:
  // built without Xen's headers.
  static absl::StatusOr<std::unique_ptr<ForeignMemory>> Open();
  ForeignMemory(const ForeignMemory&) = delete;
  ForeignMemory& operator=(const ForeignMemory&) = delete;
  ~ForeignMemory();

  // Maps frames of a domain side by side, with the rights of mmap(2)'s `protection`. Returns where
  // they begin; null, with errno: one of them cannot be mapped.
  std::byte* Map(DomainId domain, int protection, std::span<const uint64_t> frames);
  void Unmap(const std::byte* pages, size_t count);

 private:
  class Library;
  explicit ForeignMemory(std::unique_ptr<Library> library);

  std::unique_ptr<Library> library_;
};

}  // namespace xenoscope::sampler
