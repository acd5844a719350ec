// Unwinding: networks with switches, taken apart into links between ranks, by the degree that suits
// a collective best.
//
// Complexity  One synthesis a degree that is tried: 1, 2, 4, .. and those between the best and its
//             neighbours.
// Reference   [tacos] IV.G, the operator unwind of the expression language
//             (tutti/topo/operators.h).
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tutti/base/result.h"
#include "tutti/coll/collective.h"
#include "tutti/synth/auto.h"
#include "tutti/synth/synthesizer.h"
#include "tutti/topo/topology.h"

namespace tutti {

struct Unwound {
  Topology topology;
  int32_t degree = 0;  // 0: the network as it is
  // What the choice on this network was allowed (ChooseSynthesizer): allowed it again, it is the
  // same one again.
  int64_t budget_ns = kAutoBudgetNs;
  std::optional<AutoChoice> choice{};  // that one, where the search made it
  // Degree and predicted seconds, where several were; by degree.
  std::vector<std::pair<int32_t, double>> tried{};
};

// The collective wanted, on a network of some number of ranks. The flag: as one shard, for
// algorithms that reduce so (Synthesizer::one_shard_all_reduce).
struct WantedCollective {
  CollectiveKind kind;
  std::function<Result<Collective>(const Topology&, bool one_shard)> make;
};

// The network that `expression` names, unwound. kInvalidArgument: as the operator unwind says.
Result<Unwound> UnwindBy(const std::string& expression, int32_t degree);

// With the degree of the fastest schedule for the options' size (of equal ones the smallest) of
// degrees 1, 2, 4, .. and the largest there is, and of those between the best and its neighbours,
// halved until none is left. `synthesizer`: nullptr for the best of all, which tries the network
// as it is, too: then all of it together, and a choice made on what was found last, is forecast
// to work for kAutoBudgetNs at most: a quarter each for the network as it is and for that choice,
// the rest for the unwindings in equal parts; what one leaves is for those behind it. Networks without switches stay what they are.
// kInvalidArgument: as UnwindBy; what the synthesizer says on every degree. kCancelled.
Result<Unwound> UnwindBest(const std::string& expression, const Synthesizer* synthesizer,
                           const WantedCollective& wanted, const SynthOptions& options);

// The best of all on what was found: the search's own choice, which is taken out of `unwound`, or one made now.
Result<AutoChoice> ChooseOn(Unwound& unwound, const Collective& collective,
                            const SynthOptions& options);

// Whether the best of all algorithms is looked for on unwindings too.
bool TriesUnwindings(const Topology& topology, CollectiveKind kind);

}  // namespace tutti
