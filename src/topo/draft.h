// Draft: a network while a family puts it together, with its size checked before anything is
// allocated, and the link parameters that an expression gave.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/base/saturating.h"
#include "tutti/topo/topology.h"

namespace tutti::topo {

// Sizes of networks that may be absurd: INT64_MAX instead of an overflow. Arguments >= 0.
int64_t SaturatingPow(int64_t base, int64_t exponent);

// What `bw=`, `bw_per_link=` and `alpha=` said: nothing, one value, or one a dimension.
template <class Value>
struct PerDimension {
  std::vector<Value> values;
  bool is_list = false;
  size_t column = 0;

  bool given() const { return !values.empty(); }
  Value at(size_t dimension) const { return is_list ? values[dimension] : values.front(); }
};

struct LinkParameters {
  PerDimension<int64_t> bandwidth, alpha_ps;
  bool bandwidth_is_shared = false;  // a rank's total in the dimension, not one link's
  int64_t parallel = 1;              // how many links stand in place of each
  LinkSpec defaults;

  // A link along `dimension`.
  LinkSpec Link(size_t dimension) const { return Override(defaults, dimension); }
  // A link along `dimension` whose rank has `links` of them there (before `parallel`). A shared
  // bandwidth is rounded down to whole bytes a second.
  LinkSpec Share(size_t dimension, int64_t links) const;
  // `spec` but for what the expression gave.
  LinkSpec Override(LinkSpec spec, size_t dimension) const;
};

struct DraftLink {
  int32_t tail, head;
  LinkSpec spec;
};

struct Draft {
  int32_t num_ranks = 0;
  int32_t num_switches = 0;
  std::vector<DraftLink> links;
  std::vector<std::string> names;  // empty: numbers
  std::optional<GridShape> grid;
  std::shared_ptr<const Topology> original;  // what it was unwound from
  std::vector<int64_t> host_bandwidth;  // bytes/s: empty, or one a rank, 0 where it has no limit
  std::vector<int32_t> reducing;        // the switches that reduce

  // tail == head is a self-loop: a port without a link.
  void AddLink(int64_t tail, int64_t head, LinkSpec spec) {
    links.push_back({static_cast<int32_t>(tail), static_cast<int32_t>(head), spec});
  }
  void AddCable(int64_t a, int64_t b, LinkSpec spec) {
    AddLink(a, b, spec);
    AddLink(b, a, spec);
  }
};

// Links in the canonical order (tail, head, bandwidth, alpha), each `parallel` times: networks that
// are the same link for link have the same ids and fingerprint, however they were written.
// `expression`, which may be empty, is the name, too.
Result<Topology> FinishDraft(Draft draft, int64_t parallel, const std::string& expression);

// The switches of `topology` that reduce do so in `draft`, too, which has the same nodes.
void KeepReducing(const Topology& topology, Draft& draft);

// Whether the operator `family` makes of `operand` what it makes of operand.expression(), but for
// bandwidths, alphas and host limits.
bool KeepsExpression(const Topology& operand, std::string_view family);

}  // namespace tutti::topo
