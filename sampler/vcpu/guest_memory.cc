#include "sampler/vcpu/guest_memory.h"

#include <sys/mman.h>

#include <utility>

#include "base/error.h"
#include "sampler/xen/foreign_memory.h"
#include "sampler/xen/privcmd.h"

namespace xenoscope::sampler {
namespace {

class XenGuestMemory final : public GuestMemory {
 public:
  explicit XenGuestMemory(std::unique_ptr<ForeignMemory> memory) : memory_(std::move(memory)) {}

  const std::byte* Map(DomainId domain, uint64_t frame) override {
    return memory_->Map(domain, PROT_READ, {&frame, 1});
  }
  void Unmap(const std::byte* page) override { memory_->Unmap(page, 1); }

 private:
  std::unique_ptr<ForeignMemory> memory_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<GuestMemory>> OpenGuestMemory() {
  XENOSCOPE_RETURN_IF_ERROR(CheckPrivcmd());
  XENOSCOPE_ASSIGN_OR_RETURN(std::unique_ptr<ForeignMemory> memory, ForeignMemory::Open());
  return std::make_unique<XenGuestMemory>(std::move(memory));
}

}  // namespace xenoscope::sampler
