#include "tutti/design/cabling.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "tutti/topo/properties.h"

namespace tutti {
namespace {

// One end of a run, where `other` is the rank at the far end.
struct End {
  int32_t rank, other;
  size_t run;
  bool is_from;
};

// Numbers the ports of all these ends, rank by rank.
void NumberPorts(std::vector<End> ends, std::vector<CableRun>& runs) {
  std::stable_sort(ends.begin(), ends.end(), [](const End& a, const End& b) {
    return std::pair(a.rank, a.other) < std::pair(b.rank, b.other);
  });
  int32_t port = 0;
  for (size_t i = 0; i < ends.size(); ++i) {
    const End& end = ends[i];
    port = i > 0 && ends[i - 1].rank == end.rank ? port + 1 : 0;
    CableRun& run = runs[end.run];
    (end.is_from ? run.from : run.to).port = port;
  }
}

}  // namespace

Result<std::vector<CableRun>> CablingOf(const Topology& topology, bool two_way) {
  if (topology.has_switches())
    return InvalidArgument(
        fmt::format("{} has switches: a cabling list is one of ranks and their "
                    "ports",
                    topology.name()));
  std::vector<CableRun> runs;
  std::vector<End> from, to;
  const auto add = [&](LinkId link) {
    const int32_t tail = topology.tail(link).value, head = topology.head(link).value;
    from.push_back({tail, head, runs.size(), true});
    to.push_back({head, tail, runs.size(), false});
    runs.push_back({{tail, 0}, {head, 0}});
  };
  if (!two_way) {
    for (LinkId link : topology.Links()) add(link);
    NumberPorts(from, runs);
    NumberPorts(to, runs);
  } else {
    for (const Cable& cable : CablesOf(topology)) {
      if (!cable.back)
        return InvalidArgument(fmt::format(
            "{}: the link from rank {} to rank {} has no reverse, so it is no two-way cable",
            topology.name(), topology.tail(cable.there).value, topology.head(cable.there).value));
      add(cable.there);
    }
    from.insert(from.end(), to.begin(), to.end());
    NumberPorts(std::move(from), runs);
  }
  std::sort(runs.begin(), runs.end());
  return runs;
}

std::string CablingCsv(const std::vector<CableRun>& runs, bool two_way) {
  std::string text = two_way ? "cable,rank_a,port_a,rank_b,port_b\n"
                             : "fibre,from_rank,from_port,to_rank,to_port\n";
  size_t number = 0;
  for (const CableRun& run : runs)
    fmt::format_to(std::back_inserter(text), "{},{},{},{},{}\n", ++number, run.from.rank,
                   run.from.port, run.to.rank, run.to.port);
  return text;
}

}  // namespace tutti
