// FlowTable: which way the connections of a strategy take through the network: from which address and ports of the
// sender to which address of the receiver. Switches choose routes by the ports.
//
// Model       By (sender, receiver, channel); channels are those of plans (tutti/lower/plan.h), where parallel
//             links of a schedule's network are channels 0, 1, ... in the order of their numbers.
//             Connections that it does not name leave as those of a strategy without a table.
// Errors      Parse: kInvalidArgument names the flow and the field.
// Reference   [mccs] 5: a flow's path is chosen by its source port
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <tuple>

#include "tcp_transport.h"
#include "tutti/base/result.h"

namespace tutti::service {

struct FlowPath {
  TcpSource source;
  uint32_t target = INADDR_ANY;  // any: where the receiver says it listens
};

class FlowTable {
 public:
  // docs/formats/service.md; empty text: no flows.
  static Result<FlowTable> Parse(const std::string& text, int32_t num_ranks);

  bool empty() const { return flows_.empty(); }
  size_t size() const { return flows_.size(); }
  // Null: it is not named.
  const FlowPath* Find(int32_t from, int32_t to, int32_t channel) const {
    const auto found = flows_.find({from, to, channel});
    return found == flows_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::tuple<int32_t, int32_t, int32_t>, FlowPath> flows_;
};

}  // namespace tutti::service
