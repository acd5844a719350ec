// What a topology family is: one line of the registry (registry.cc) and one function that turns a
// call such as `torus(4,4,bw=25GB/s)` into a Draft.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "draft.h"
#include "tutti/base/result.h"
#include "tutti/topo/expression.h"

namespace tutti::topo {

struct Family;
struct FamilyCall;

// A keyword whose value is no whole number.
struct Setting {
  enum class Kind {
    kBandwidth,  // nic=400Gbit/s
    kRatio,      // oversubscription=3:2
    kFabric,     // fabric=fat_tree(8)
    kOverrides,  // override=[leaf0-spine1:50GB/s]
  };
  std::string_view name;
  Kind kind;
};

// One value of link=: the ends of a cable, "0-1" or "leaf0-spine1".
struct NamedCable {
  std::string text;
  size_t column = 1;
};

// What reduces= says: all switches, or those that are called so.
struct ReducingSwitches {
  size_t column = 1;
  bool all = false;
  std::vector<NamedCable> names = {};  // "leaf0", or what stands behind the last dot: "nvswitch"
};

// num / den, in lowest terms, 1 <= num, den <= 10^6.
struct Ratio {
  int64_t num = 1, den = 1;
};

// What was given for a setting: the member of its kind.
struct SettingValue {
  std::string text = {};  // canonical
  size_t column = 1;
  int64_t bandwidth = 0;
  Ratio ratio = {};
  std::vector<FamilyCall> fabric;  // one
  std::vector<NamedCable> overrides = {};
};

// A call with its arguments evaluated: the name of a member, networks, numbers, keywords.
struct FamilyCall {
  const Family* family = nullptr;
  size_t column = 1;
  size_t member = 0;  // which of the family's members, where it has some
  std::vector<Topology> operands;
  std::vector<int64_t> sizes;
  std::vector<size_t> size_columns;
  std::vector<std::optional<int64_t>> options;  // as Family::options, nullopt when not given
  LinkParameters links;
  std::optional<int64_t> host_bandwidth;              // host_bw=, of every rank
  std::optional<ReducingSwitches> reducing = {};      // reduces=
  std::vector<NamedCable> cables;                     // link=
  std::vector<std::optional<SettingValue>> settings;  // as Family::settings
  std::string path = {};                              // where Family::reads_file
  ParseLimits limits;

  // What the keyword `name` says; nullopt where it was not given or the family has none of it.
  std::optional<int64_t> option(std::string_view name) const;
  const SettingValue* setting(std::string_view name) const;  // nullptr

  // Whether links, hosts or switches differ from what the operands alone would give.
  bool ChangesLinks() const {
    return links.bandwidth.given() || links.alpha_ps.given() || links.parallel != 1 ||
           host_bandwidth.has_value() || reducing.has_value();
  }

  // The error of this call, of its i-th number, or none when that number is within [least, most].
  tl::unexpected<Error> Fault(const std::string& message) const;
  tl::unexpected<Error> FaultOfSize(size_t i, const std::string& message) const;
  Status CheckSize(size_t i, int64_t least,
                   int64_t most = std::numeric_limits<int64_t>::max()) const;
  Status CheckSizes(int64_t least) const;

  // An empty draft of this size with room for `num_links` links, once the size is within the limits
  // and lists of link parameters have `dimensions` values. Self-loops count as links.
  Result<Draft> Start(int64_t num_ranks, int64_t num_switches, int64_t num_links,
                      size_t dimensions) const;
};

struct Range {
  size_t least = 0;
  size_t most = 0;
};
inline constexpr size_t kAny = std::numeric_limits<size_t>::max();

struct Family {
  FamilyInfo info;
  Range operands;  // networks, before the numbers
  Range sizes;     // whole numbers
  Result<Draft> (*build)(const FamilyCall&);
  std::vector<std::string_view> options = {};  // keywords with a whole number
  bool shares_bandwidth = false;               // bw= is a rank's total in a dimension
  LinkSpec default_link = {};
  bool names_cables = false;  // link=
  std::vector<Setting> settings = {};
  bool reads_file = false;  // its first argument is a path
};

// Sorted by name.
std::span<const Family> Families();
// nullptr: no family has this name.
const Family* FindFamily(std::string_view name);
// What fabric= takes: these describe and build nothing by themselves.
std::span<const Family> Fabrics();

// grids.cc
Result<Draft> BuildRing(const FamilyCall& call);
Result<Draft> BuildUniring(const FamilyCall& call);
Result<Draft> BuildBiring(const FamilyCall& call);
Result<Draft> BuildTorus(const FamilyCall& call);
Result<Draft> BuildMesh(const FamilyCall& call);
Result<Draft> BuildHypercube(const FamilyCall& call);
Result<Draft> BuildTwistedHypercube(const FamilyCall& call);
Result<Draft> BuildTwistedTorus(const FamilyCall& call);
// graphs.cc
Result<Draft> BuildComplete(const FamilyCall& call);
Result<Draft> BuildBipartite(const FamilyCall& call);
Result<Draft> BuildHamming(const FamilyCall& call);
Result<Draft> BuildCirculant(const FamilyCall& call);
Result<Draft> BuildDircirculant(const FamilyCall& call);
Result<Draft> BuildDebruijn(const FamilyCall& call);
// kautz.cc
Result<Draft> BuildKautz(const FamilyCall& call);
Result<Draft> BuildGenkautz(const FamilyCall& call);
Result<Draft> BuildGenkautzMod(const FamilyCall& call);
// found.cc
Result<Draft> BuildDiamond(const FamilyCall& call);
Result<Draft> BuildDebruijnMod(const FamilyCall& call);
// expanders.cc
Result<Draft> BuildRandomRegular(const FamilyCall& call);
Result<Draft> BuildXpander(const FamilyCall& call);
// cayley.cc
Result<Draft> BuildCayley(const FamilyCall& call);
// machines.cc
Result<Draft> BuildDgx1(const FamilyCall& call);
Result<Draft> BuildRfs(const FamilyCall& call);
Result<Draft> BuildSwitch(const FamilyCall& call);
Result<Draft> BuildSwitch2d(const FamilyCall& call);
Result<Draft> BuildDragonfly(const FamilyCall& call);
// operators.cc
// Refuses an operand with host limits, where its ranks are not those of the result.
Status CheckNoHostLimits(const FamilyCall& call);
// Links and self-loops.
int64_t CountPorts(const Topology& topology);
Result<Draft> BuildProduct(const FamilyCall& call);
Result<Draft> BuildPower(const FamilyCall& call);
Result<Draft> BuildTranspose(const FamilyCall& call);
Result<Draft> BuildBidirectional(const FamilyCall& call);
Result<Draft> BuildUnwind(const FamilyCall& call);
// without.cc
Result<Draft> BuildWithout(const FamilyCall& call);
// hosts.cc
Result<Draft> BuildHostForwarding(const FamilyCall& call);
Result<Draft> BuildNicForwarding(const FamilyCall& call);
// distreg.cc
std::span<const FamilyMember> DistregMembers();
Result<Draft> BuildDistreg(const FamilyCall& call);
// clusters.cc
Result<Draft> BuildCluster(const FamilyCall& call);
Result<Draft> BuildRail(const FamilyCall& call);
Result<Draft> BuildDgxA100(const FamilyCall& call);
Result<Draft> BuildDgxH100(const FamilyCall& call);
Result<Draft> BuildMi250(const FamilyCall& call);
Result<Draft> BuildNvl72(const FamilyCall& call);
Result<Draft> BuildFatTree(const FamilyCall& call);
Result<Draft> BuildSpineLeaf(const FamilyCall& call);
Result<Draft> BuildHosts(const FamilyCall& call);
// expansions.cc
Result<Draft> BuildLine(const FamilyCall& call);
Result<Draft> BuildDegree(const FamilyCall& call);

}  // namespace tutti::topo
