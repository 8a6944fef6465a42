#include "sampler/vcpu/guest_memory.h"

#include "base/error.h"

#ifdef XENOSCOPE_HAVE_XEN

#include <sys/mman.h>
extern "C" {  // Xen's headers lack it
#include <xenforeignmemory.h>
}

#include <cerrno>

#include "sampler/xen/privcmd.h"

namespace xenoscope::sampler {
namespace {

class ForeignMemory final : public GuestMemory {
 public:
  explicit ForeignMemory(xenforeignmemory_handle* memory) : memory_(memory) {}
  ForeignMemory(const ForeignMemory&) = delete;
  ForeignMemory& operator=(const ForeignMemory&) = delete;
  ~ForeignMemory() override { xenforeignmemory_close(memory_); }

  const std::byte* Map(DomainId domain, uint64_t frame) override {
    const xen_pfn_t number = frame;
    int error = 0;
    void* const at = xenforeignmemory_map(memory_, domain.value, PROT_READ, 1, &number, &error);
    if (at == nullptr) return nullptr;
    if (error == 0) return static_cast<const std::byte*>(at);
    xenforeignmemory_unmap(memory_, at, 1);
    return nullptr;
  }

  void Unmap(const std::byte* page) override {
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-const-cast): it is not written to
    xenforeignmemory_unmap(memory_, const_cast<std::byte*>(page), 1);
  }

 private:
  xenforeignmemory_handle* memory_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GuestMemory>> OpenGuestMemory() {
  XENOSCOPE_RETURN_IF_ERROR(CheckPrivcmd());
  xenforeignmemory_handle* const memory = xenforeignmemory_open(nullptr, 0);
  if (memory == nullptr) {
    return ErrnoError(errno, "cannot open /dev/xen/privcmd to map the memory of guests");
  }
  return std::make_unique<ForeignMemory>(memory);
}

}  // namespace xenoscope::sampler

#else

namespace xenoscope::sampler {

absl::StatusOr<std::unique_ptr<GuestMemory>> OpenGuestMemory() {
  return UnimplementedError(
      "this xenoscope was built without Xen's libraries: install libxen-dev and build again");
}

}  // namespace xenoscope::sampler

#endif
