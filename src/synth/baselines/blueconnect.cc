// blueconnect: reduce-scatter through the dimensions one after another, all-gather back.
//
// Model       Every chunk's reduce-scatter takes the dimensions in the order in which the
//             expression lists them, the all-gather in the reverse: the first dimension carries
//             most, which in rfs is the fast one. Chunks follow each other as a pipeline.
//             baselines/dimensions.h says which networks have dimensions and what happens in one.
// Reference   [blueconnect] as [tacos] section VI.3 tells it. Deviation: algorithms within a
//             dimension are ours (both ways round rings, to both ends of lines, direct elsewhere).
#include "baselines/dimensions.h"
#include "registry.h"

namespace tutti {
namespace baselines {
namespace {

constexpr std::string_view kBlueConnect = "blueconnect";

Orders AsListed(const std::vector<Dimension>& dims, int32_t chunks, const Rational&) {
  std::vector<int32_t> order;
  for (size_t d = 0; d < dims.size(); ++d) order.push_back(static_cast<int32_t>(d));
  return Orders(static_cast<size_t>(chunks), order);
}

Result<Schedule> SynthesizeBlueConnect(const Topology& topology, const Collective& collective,
                                       const SynthOptions& options) {
  return MakeByDimensions(kBlueConnect, topology, collective, options, AsListed);
}

}  // namespace
}  // namespace baselines

Synthesizer BlueConnectSynthesizer() {
  using Kind = CollectiveKind;
  return {.name = baselines::kBlueConnect,
          .description = "BlueConnect: the dimensions one after another, chunks as a pipeline",
          .collectives = {Kind::kAllGather, Kind::kReduceScatter, Kind::kAllReduce},
          .synthesize = baselines::SynthesizeBlueConnect,
          .chunk_choice = true};
}

}  // namespace tutti
