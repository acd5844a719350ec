// Which transfers of a schedule are needed, and what each must come after: see compact.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "tutti/sched/schedule.h"

namespace tutti::ten {

// A transfer with its times; of a step schedule step t begins at t and has arrived at t + 1.
struct Job {
  int64_t start = 0, arrival = 0;
  // Earlier, its place at the receiver is still used for another value.
  int64_t arrives_not_before = 0;
  bool is_needed = false;
  bool stays = false;  // at its time
};

class Dataflow {
 public:
  // `jobs` has the times of each transfer; the rest of each is filled in.
  Dataflow(const Topology& topology, const Schedule& schedule, std::vector<Job>& jobs);

  // The transfers that brought what this one sends.
  std::span<const uint32_t> Suppliers(uint32_t job) const {
    return {supplier_.data() + first_supplier_[job],
            supplier_.data() + first_supplier_[size_t{job} + 1]};
  }

 private:
  std::vector<uint32_t> first_supplier_, supplier_;
};

}  // namespace tutti::ten
