// Candidates: networks that are known by recipe and predicted cost only, and what expansions make
// of them.
//
// Invariants  C1  (tl, tb) is what the all-gather of every maker in `properties` costs: kByExpand
//                 the mapped schedules of synth/expand, kByBfb breadth-first broadcast on the whole
//                 network. At least one of the two holds.
//             C2  Costs and properties are monotone: an expansion of a candidate that is no worse
//                 in its costs and has all the properties is no worse and has all the properties.
//                 Frontier (frontier.h) lives on that.
//             C3  The same holds of the transpose and `reduce_scatter`: every property is one of
//                 both. The transpose of an expansion is the expansion of the transposes, so each
//                 expansion changes the two costs by the same formula, one apart from the other.
// Reference   [direct-connect] theorems 7.1, 10 .. 13, A.6.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "base.h"
#include "tutti/base/rational.h"

namespace tutti::design {

enum Property : uint32_t {
  kBidirectional = 1 << 0,
  kReverseSymmetric = 1 << 1,
  kNoSelfLoops = 1 << 2,
  kByExpand = 1 << 3,
  kByBfb = 1 << 4,
  // Simple, and breadth-first broadcast is bandwidth-optimal: a factor for theorem 13.
  kFactor = 1 << 5,
  // Every rank has links to two others or more: theorem 10.
  kBranches = 1 << 6,
  // Breadth-first broadcast on the line digraph costs what theorem 10 says (MakeLine).
  kLineByBfb = 1 << 7,
  // Made of one of the asker's own bases.
  kOwn = 1 << 8,
};

enum class Step { kBase, kLine, kDegree, kPower, kProduct, kBidirectional };

struct Candidate {
  int32_t ranks = 0, degree = 0, tl = 0;  // tl and tb of the all-gather
  Rational tb;
  DesignCost reduce_scatter;
  uint32_t properties = 0;
  // For a degree expansion of a network that is not bidirectional it may be one less.
  int32_t diameter = 0;
  bool diameter_exact = true;

  Step step = Step::kBase;
  int32_t times = 1;                       // line: how often; degree, power: n
  std::vector<const Candidate*> operands;  // product: sorted, equal ones side by side
  std::string_view reference;              // base: where its cost is shown

  std::string recipe;

  bool has(uint32_t wanted) const { return (properties & wanted) == wanted; }
};

Candidate MakeBase(const BaseEntry& entry, std::string_view reference);
// The same links turned around; `entry` has a cost of its own for the reduce-scatter.
BaseEntry TransposeOf(const BaseEntry& entry);
// The operands outlive the result. Each TUTTI_CHECKs what it needs of them.
Candidate MakeLine(const Candidate& base);                      // degree >= 2
Candidate MakeDegree(const Candidate& base, int32_t n);         // CanDegree
Candidate MakePower(const Candidate& base, int32_t n);          // kByExpand
Candidate MakeProduct(const Candidate& a, const Candidate& b);  // both kFactor
Candidate MakeBidirectional(const Candidate& base);             // CanBidirectional
// Those that every product of the two has, to find out before making it.
uint32_t PropertiesOfProduct(const Candidate& a, const Candidate& b);
bool CanLine(const Candidate& base);
bool CanDegree(const Candidate& base);
bool CanBidirectional(const Candidate& base);

// One sentence a step, base first.
std::vector<std::string> ReasonsOf(const Candidate& candidate);

}  // namespace tutti::design
