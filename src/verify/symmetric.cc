#include "tutti/verify/symmetric.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

#include "root_run.h"
#include "structure.h"
#include "translation_group.h"
#include "tutti/base/cancel.h"

namespace tutti {
namespace {

bool Fits(CollectiveKind kind, TransferOp op) {
  return kind == CollectiveKind::kAllReduce ||
         (op == TransferOp::kReduce) == (kind == CollectiveKind::kReduceScatter);
}

std::pair<ViolationKind, std::string> FaultOf(const Topology& topology,
                                              const Collective& collective, const Schedule& root,
                                              size_t index) {
  verify::TransferFault fault = verify::FaultOfTransfer(topology, collective, root, index);
  return {fault.kind, std::move(fault.message)};
}

// Rule Z1.
std::optional<Violation> FaultOfStructure(const Topology& topology, const Collective& collective,
                                          const SymmetricSchedule& schedule) {
  const Schedule& root = schedule.root;
  const CollectiveKind kind = collective.kind();
  const auto fault = [](std::string message) {
    return Violation{ViolationKind::kStructure, std::move(message), -1};
  };
  if (auto whole = verify::FaultOfWhole(topology, collective, root)) return whole;
  if (!collective.treats_ranks_alike())
    return fault(fmt::format("{} over {} shards has no symmetric form", Name(kind),
                             collective.num_shards()));
  if (root.kind != ScheduleKind::kStep) return fault("a timed schedule has no symmetric form");
  if (topology.has_switches()) return fault("the network has switches, which no rank can become");
  int32_t step = 0;
  for (size_t i = 0; i < root.transfers.size(); ++i) {
    const Transfer& transfer = root.transfers[i];
    std::string wrong;
    ViolationKind kind_of_fault = ViolationKind::kStructure;
    if (transfer.shard.value != 0)
      wrong = fmt::format("is of shard {}, but the root's transfers are of shard 0",
                          transfer.shard.value);
    else if (!verify::IsSound(topology, collective, root, transfer) || transfer.step < step)
      std::tie(kind_of_fault, wrong) = FaultOf(topology, collective, root, i);
    else if (!Fits(kind, transfer.op))
      wrong = fmt::format("{}, which no transfer of {} does",
                          transfer.op == TransferOp::kReduce ? "reduces" : "copies", Name(kind));
    if (!wrong.empty())
      return Violation{kind_of_fault, fmt::format("transfer {} {}", i, wrong),
                       static_cast<int64_t>(i)};
    step = transfer.step;
  }
  return std::nullopt;
}

}  // namespace

VerifyReport VerifySymmetric(const Topology& topology, const Collective& collective,
                             const SymmetricSchedule& schedule, const VerifyOptions& options) {
  VerifyReport report;
  const auto limit = static_cast<size_t>(std::max(options.max_violations, 0));
  const auto stop_at = [&](Violation violation) {
    report.num_violations = 1;
    if (limit > 0) report.violations.push_back(std::move(violation));
    return report;
  };
  if (auto fault = FaultOfStructure(topology, collective, schedule))
    return stop_at(*std::move(fault));
  if (auto fault = verify::FaultOfTranslations(topology, schedule.generators))
    return stop_at({ViolationKind::kSymmetry, *std::move(fault), -1});
  verify::RunRoot(topology, schedule.root, limit, report);
  report.deliveries = topology.num_ranks() * static_cast<int64_t>(schedule.root.transfers.size());
  report.cancelled = CancelRequested();
  return report;
}

}  // namespace tutti
