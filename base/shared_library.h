// A library that is loaded when it is first needed: those that depend on dozens of others would
// make every command start late.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace xenoscope {

// It stays loaded until the program ends: some have threads of their own.
class SharedLibrary {
 public:
  // Loads the library of this file name (soname). Errors (NotFound): it is not installed;
  // `purpose` begins the message: "debug servers".
  static absl::StatusOr<SharedLibrary> Load(const std::string& name, std::string_view purpose);

  // Sets `function` to the library's function of this name. Errors (NotFound): it has none.
  template <typename Function>
  absl::Status Find(const char* symbol, Function*& function) const {
    const absl::StatusOr<void*> found = Find(symbol);
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym is for
    if (found.ok()) function = reinterpret_cast<Function*>(*found);
    return found.status();
  }

 private:
  SharedLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  absl::StatusOr<void*> Find(const char* symbol) const;

  void* handle_;
  std::string name_;
};

}  // namespace xenoscope
