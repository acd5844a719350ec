#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "fake_cluster.h"

namespace tutti::controller {
namespace {

using testing::HasSubstr;

TEST(ClusterConfigTest, FaultsAreNamed) {
  const auto fault = [](const std::string& pointer, const Json& value) {
    Json json = ConfigJson();
    json[Json::json_pointer(pointer)] = value;
    const Result<ClusterConfig> config = ParseClusterConfig(json.dump());
    return config ? "" : config.error().message;
  };
  EXPECT_THAT(fault("/topology", "torus(4,"), HasSubstr("topology: "));
  EXPECT_THAT(fault("/hosts", Json::array()), HasSubstr("hosts: 0 are listed, the network has 4"));
  EXPECT_THAT(fault("/hosts/1/name", "H0"), HasSubstr("hosts[1].name: 'H0' is there twice"));
  EXPECT_THAT(fault("/hosts/2/nics", {"10.1.2.1"}),
              HasSubstr("hosts[2].nics: 1 are listed, the host has 2 devices"));
  EXPECT_THAT(fault("/hosts/2/nic", "x"), HasSubstr("hosts[2].nic: is no field"));
  EXPECT_THAT(fault("/routes/1/ports", {60000, 6000}), HasSubstr("routes[1].ports: wanted"));
  EXPECT_THAT(fault("/routes", Json::array({{{"ports", {50000, 1000}}}})),
              HasSubstr("routes: 1 are listed, the network has up to 2"));
  EXPECT_THAT(fault("/tenants/A/class", -1), HasSubstr("tenants.A.class: got -1"));
  EXPECT_THAT(fault("/polcy", "ffa"), HasSubstr("polcy: is no field"));
  EXPECT_THAT(ParseClusterConfig("[1").error().message, HasSubstr("is no JSON object"));
}

}  // namespace
}  // namespace tutti::controller
