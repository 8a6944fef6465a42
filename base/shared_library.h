// A library that is loaded when it is first needed: those that depend on dozens of others would
// make every command start late.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace xenoscope {

// It stays loaded until the program ends: some have threads of their own.
class SharedLibrary {
 public:
  // Loads the library of this file name (soname). Errors (NotFound): it is not installed;
  // `purpose` begins the message: "debug servers".
  static absl::StatusOr<SharedLibrary> Load(const std::string& name, std::string_view purpose);

  // Sets `function` to the library's function of this name, and so on for more names with their
  // functions. Errors (NotFound): it does not have one of them.
  template <typename Function, typename... More>
  absl::Status Find(const char* symbol, Function*& function, More&&... more) const {
    const absl::StatusOr<void*> found = Find(symbol);
    if (!found.ok()) return found.status();
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): what dlsym is for
    function = reinterpret_cast<Function*>(*found);
    if constexpr (sizeof...(More) == 0) {
      return absl::OkStatus();
    } else {
      return Find(std::forward<More>(more)...);
    }
  }

 private:
  SharedLibrary(void* handle, std::string name) : handle_(handle), name_(std::move(name)) {}
  absl::StatusOr<void*> Find(const char* symbol) const;

  void* handle_;
  std::string name_;
};

}  // namespace xenoscope
