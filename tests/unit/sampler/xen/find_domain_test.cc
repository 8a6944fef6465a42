// Looking up a domain by name or id.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"
#include "sampler/xen/host.h"

namespace xenoscope::sampler {
namespace {

std::vector<recording::DomainInfo> Domains() {
  std::vector<recording::DomainInfo> domains(3);
  domains[0].name = "Domain-0";
  domains[1].id = DomainId{3};
  domains[1].name = "web";
  domains[2].id = DomainId{4};
  domains[2].name = "3";  // a name wins over an id
  return domains;
}

TEST(FindDomainTest, ByNameThenById) {
  EXPECT_EQ(*FindDomain(Domains(), "web"), DomainId{3});
  EXPECT_EQ(*FindDomain(Domains(), "3"), DomainId{4});
  EXPECT_EQ(*FindDomain(Domains(), "4"), DomainId{4});
  EXPECT_EQ(*FindDomain(Domains(), "0"), kDom0);
}

TEST(FindDomainTest, ErrorListsDomains) {
  for (const char* name : {"db", "7", "99999", "4x", ""}) {
    EXPECT_THAT(std::string(Message(FindDomain(Domains(), name).status())),
                testing::HasSubstr("0 (Domain-0), 3 (web), 4 (3)"));
  }
}

}  // namespace
}  // namespace xenoscope::sampler
