#include "messages.h"

#include <fmt/format.h>

#include <optional>
#include <string>

#include "link_overlap.h"
#include "runs.h"
#include "structure.h"
#include "words.h"

namespace tutti::verify {
namespace {

class Describer {
 public:
  Describer(const Problem& problem, const Finding& finding)
      : problem_(problem), topology_(problem.topology()), finding_(finding) {}

  std::string Text() const {
    switch (finding_.kind) {
      case ViolationKind::kNotHeld:
        return NotHeld();
      case ViolationKind::kRedundantDelivery:
        return Redundant();
      case ViolationKind::kDoubleReduction:
        return DoubleReduction();
      case ViolationKind::kOverwrite:
        return Overwrite();
      case ViolationKind::kLinkOverlap:
        return LinkOverlap();
      default:
        return Postcondition();
    }
  }

 private:
  const Transfer& transfer() const { return problem_.transfer(Index(finding_.transfer)); }
  static uint32_t Index(int64_t transfer) { return static_cast<uint32_t>(transfer); }

  std::string What() const {
    return fmt::format("{} of {}",
                       PartText(finding_.begin, finding_.end, problem_.schedule().units_per_shard),
                       ShardText(topology_, problem_.collective(), finding_.shard));
  }
  // When a transfer is sent, and when it has arrived.
  std::string Sent(int64_t index) const {
    if (problem_.timed()) return "at " + TimeText(problem_.Start(Index(index)));
    return fmt::format("in step {}", problem_.transfer(Index(index)).step);
  }
  std::string Arrived(int64_t index) const {
    if (problem_.timed()) return "at " + TimeText(problem_.Arrival(Index(index)));
    return fmt::format("in step {}", problem_.transfer(Index(index)).step);
  }
  std::string Prefix() const {
    return fmt::format("transfer {} {}: ", finding_.transfer, Sent(finding_.transfer));
  }
  std::string Over() const { return "over link " + LinkText(topology_, transfer().link); }
  std::string Node() const { return NodeText(topology_, finding_.node); }
  std::string RankText(int32_t rank) const { return NodeText(topology_, NodeId{rank}); }

  bool Brings(uint32_t index) const {
    const Transfer& other = problem_.transfer(index);
    return index != Index(finding_.transfer) && topology_.head(other.link) == finding_.node &&
           other.begin <= finding_.begin && finding_.begin < other.end;
  }

  std::string NotHeld() const {
    std::optional<uint32_t> next;
    for (uint32_t index : problem_.OfShard(finding_.shard))
      if (Brings(index) && problem_.Arrival(index) > finding_.time &&
          (!next || problem_.Arrival(index) < problem_.Arrival(*next)))
        next = index;
    const std::string later =
        next ? fmt::format("it arrives only {} by transfer {}", Arrived(*next), *next)
             : "nothing ever brings it there";
    return fmt::format("{}{} does not hold {}, which it sends {}; {}", Prefix(), Node(), What(),
                       Over(), later);
  }

  std::string Since(int64_t other) const {
    if (other < 0) return "from the start";
    return fmt::format("{} by transfer {}", Arrived(other), other);
  }

  std::string Redundant() const {
    int64_t other = finding_.other;
    for (uint32_t index : problem_.OfShard(finding_.shard)) {
      if (other >= 0 || index == Index(finding_.transfer)) break;
      if (Brings(index)) other = index;
    }
    return fmt::format("{}{} arrives at {} {}, which has got it already, {}", Prefix(), What(),
                       Node(), Over(), Since(other));
  }

  // Which transfer brought the contribution that is named.
  int64_t BroughtBy() const {
    if (finding_.contributor == finding_.node.value) return -1;
    Findings ignored(0);
    ReducingRun::Probe probe{finding_.node, finding_.begin, finding_.contributor};
    ReducingRun(problem_).Run(finding_.shard, ignored, &probe);
    return probe.transfer;
  }

  std::string DoubleReduction() const {
    return fmt::format(
        "{}{} is reduced into {} {}, where the contribution of {} would count twice; it is there "
        "{}",
        Prefix(), What(), Node(), Over(), RankText(finding_.contributor), Since(BroughtBy()));
  }

  std::string Overwrite() const {
    const bool copies = transfer().op == TransferOp::kCopy;
    const std::string deed = fmt::format("{}{} is {} {} {}", Prefix(), What(),
                                         copies ? "copied to" : "reduced into", Node(), Over());
    if (finding_.other >= 0)
      return fmt::format("{} at the same time as transfer {} {}; which of them counts is open",
                         deed, finding_.other,
                         problem_.transfer(Index(finding_.other)).op == TransferOp::kCopy
                             ? "copies to it"
                             : "reduces into it");
    return fmt::format("{} and overwrites the contribution of {}, which is there {}", deed,
                       RankText(finding_.contributor), Since(BroughtBy()));
  }

  std::string LinkOverlap() const {
    return fmt::format("{}{} takes link {}, which transfer {} ({}) holds until {}", Prefix(),
                       What(), LinkText(topology_, transfer().link), finding_.other,
                       "sent " + Sent(finding_.other),
                       TimeText(LinkFreeAt(problem_, Index(finding_.other))));
  }

  std::string Postcondition() const {
    if (finding_.contributor < 0) return fmt::format("in the end {} lacks {}", Node(), What());
    return fmt::format(
        "in the end {} lacks {} of {} contributions to {}, that of {} first", Node(),
        finding_.lacking,
        problem_.collective().contributors(finding_.shard).Count(topology_.num_ranks()), What(),
        RankText(finding_.contributor));
  }

  const Problem& problem_;
  const Topology& topology_;
  const Finding& finding_;
};

}  // namespace

Violation Describe(const Problem& problem, const Finding& finding) {
  if (finding.kind == ViolationKind::kStructure) {
    TransferFault fault =
        FaultOfTransfer(problem.topology(), problem.collective(), problem.schedule(),
                        static_cast<size_t>(finding.transfer));
    return {fault.kind, fmt::format("transfer {} {}", finding.transfer, fault.message),
            finding.transfer};
  }
  return {finding.kind, Describer(problem, finding).Text(), finding.transfer};
}

}  // namespace tutti::verify
