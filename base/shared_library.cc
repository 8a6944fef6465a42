#include "base/shared_library.h"

#include <dlfcn.h>

#include "base/error.h"

namespace xenoscope {

absl::StatusOr<SharedLibrary> SharedLibrary::Load(const std::string& name,
                                                  std::string_view purpose) {
  void* handle = dlopen(name.c_str(), RTLD_NOW);
  if (handle == nullptr) {
    return NotFoundError("{} need {}, which is not installed", purpose, name);
  }
  return SharedLibrary(handle, name);
}

absl::StatusOr<void*> SharedLibrary::Find(const char* symbol) const {
  void* found = dlsym(handle_, symbol);
  if (found == nullptr) return NotFoundError("{} is too old: install a newer one", name_);
  return found;
}

}  // namespace xenoscope
