#include "guests/threads/container_name.h"

#include <cstddef>
#include <string_view>

namespace xenoscope::guests {
namespace {

std::string_view Without(std::string_view text, std::string_view suffix) {
  return text.ends_with(suffix) ? text.substr(0, text.size() - suffix.size()) : text;
}

}  // namespace

std::string ContainerName(const std::string& cgroup) {
  constexpr size_t kShortId = 12;  // of an id of 64 digits, as `docker ps` shows it
  std::string_view name = cgroup;
  while (name.ends_with('/')) name.remove_suffix(1);
  constexpr std::string_view kLxc = "lxc.payload.";
  if (const size_t lxc = name.find(kLxc); lxc != std::string_view::npos) {
    name.remove_prefix(lxc + kLxc.size());
    return std::string(name.substr(0, name.find('/')));
  }
  name = name.substr(name.rfind('/') + 1);
  name = Without(Without(name, ".scope"), ".service");
  for (const std::string_view engine : {"docker-", "libpod-", "cri-containerd-", "crio-"}) {
    if (name.starts_with(engine)) name.remove_prefix(engine.size());
  }
  const bool is_id =
      name.size() == 64 && name.find_first_not_of("0123456789abcdef") == std::string_view::npos;
  return std::string(is_id ? name.substr(0, kShortId) : name);
}

}  // namespace xenoscope::guests
