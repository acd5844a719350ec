// Version 2 of the binary schedule format: a symmetric schedule. Layout: docs/formats/schedule.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frame.h"
#include "tutti/sched/symmetric.h"
#include "tutti/store/store.h"

namespace tutti {

// What the header of such a file holds.
struct SymmetricHeader {
  struct Port {
    int32_t head = 0;
    LinkSpec spec;
    friend bool operator==(const Port&, const Port&) = default;
  };
  Schedule root;  // without transfers
  TopologyOrigin origin;
  int32_t num_generators = 0;
  std::vector<Port> ports;                // the links out of rank 0, by class
  std::vector<LinkSpec> loops;            // ports without a link, of every rank
  std::optional<int64_t> host_bandwidth;  // of every rank
  std::vector<std::string> node_names;    // empty: numbers
};

// json.cc
std::string SymmetricHeaderToJson(const SymmetricHeader& header);
Result<SymmetricHeader> SymmetricHeaderFromJson(std::string_view text);

namespace binary {

// The reader of the whole schedule, written out.
Result<std::unique_ptr<ScheduleReader>> OpenExpanded(Source& source, const Front& front);

}  // namespace binary
}  // namespace tutti
