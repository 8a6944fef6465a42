#include "guests/threads/container_name.h"

#include <gtest/gtest.h>

#include <string>

namespace xenoscope::guests {
namespace {

TEST(ContainerName, IsWhatItsManagerCallsIt) {
  const std::string id(64, 'a');
  EXPECT_EQ(ContainerName("/system.slice/nginx.service"), "nginx");
  EXPECT_EQ(ContainerName("/system.slice/docker-" + id + ".scope"), "aaaaaaaaaaaa");
  EXPECT_EQ(ContainerName("/docker/" + id), "aaaaaaaaaaaa");
  EXPECT_EQ(ContainerName("/machine.slice/libpod-" + id + ".scope/container"), "container");
  EXPECT_EQ(ContainerName("/lxc.payload.shop/system.slice/cron.service"), "shop");
  EXPECT_EQ(ContainerName("/"), "");
  EXPECT_EQ(ContainerName(""), "");
}

}  // namespace
}  // namespace xenoscope::guests
