// [tacos] table V: all-reduce on 3D-RFS of 2 to 16 nodes.
#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "registry.h"
#include "tacos.h"
#include "tutti/base/cancel.h"
#include "tutti/base/progress.h"

namespace tutti {
namespace tacos_table5 {
namespace {

using namespace tacos;

constexpr int64_t kSize = kGigabyte;
constexpr int64_t kRanksOfNode = 8;  // 2 x 4
constexpr int32_t kTacclRanks = 16;  // the largest that the integer program takes

struct Printed {
  int32_t nodes;
  // Times over that of TACOS; the ideal, too.
  const char *taccl, *ring, *rhd, *direct, *ideal;
  const char *ten_ms, *taccl_ms;
  // Times over the ideal, from the printed ones: ring / ideal and so on.
  const char *ring_of_ideal, *rhd_of_ideal, *direct_of_ideal, *efficiency;
};
constexpr std::array<Printed, 4> kPrinted = {
    {{2, "2.89", "7.14", "5.27", "4.04", "1.00", "0.63", "790", "7.14", "5.27", "4.04", "100"},
     {4, "4.10", "5.10", "4.42", "7.86", "0.72", "8.90", "2001", "7.08", "6.14", "10.92", "72"},
     {8, "4.27", "4.80", "5.83", "16.84", "0.68", "97.92", "7016", "7.06", "8.57", "24.76", "68"},
     {16, "", "4.82", "9.85", "36.02", "0.68", "1080", "", "7.09", "14.49", "52.97", "68"}}};
constexpr const char *kEfficiency = "75.88", *kOverRing = "5.39";

struct Reading {
  const char* name;
  const char* bandwidths;
};
constexpr std::array<Reading, 2> kReadings = {
    {{"every link 50 GB/s", "bw_per_link=50GB/s"},
     {"a rank has 200, 100 and 50 GB/s in the dimensions", "bw=[200,100,50]GB/s"}}};

constexpr std::array<const char*, 4> kNotes = {
    "All-reduce of 1 GB, alpha = 0.5 us; the size is not printed in the paper. TACOS is the "
    "fastest of unwindings of degree 1 and 2 and of the numbers of chunks tried. Basic algorithms "
    "cross the unwinding of degree 1 as messages merged with nothing, RHD the far partners first.",
    "TACCL-like takes 16 ranks at most here.",
    "Times over the ideal are the paper's divided by its Ideal column; they do not depend on how "
    "good TACOS is and say what the network is. Direct loads a link of the switch unwound to a "
    "ring one way with (nodes - 1) / 2 times M in each half, so it takes (nodes - 1) / 2 times B "
    "over the switch's bandwidth: of the paper's figures from 32 ranks on, B is 7 times that "
    "bandwidth, as with 200 + 100 + 50 GB/s of a rank, and not 5 times, as with every link alike. "
    "Direct and RHD agree under the second reading only.",
    "The paper's Ring is at 7.1 = 350 / 50 for all sizes, as a ring one way that only the switch "
    "slows down; ours also crosses links of the fully connected dimension, which have 33 GB/s in "
    "the second reading."};

ResultTable TacosTimesTable(const Reading& reading) {
  return {.title = fmt::format("Times over that of TACOS: {}", reading.name),
          .label_name = "ranks (nodes)",
          .columns = {{.name = "TACOS", .unit = "us", .digits = 1},
                      {.name = "synthesis", .unit = "ms", .digits = 2, .timed = true},
                      {.name = "TACCL", .digits = 2},
                      {.name = "TACCL synthesis", .unit = "ms", .digits = 0, .timed = true},
                      {.name = "Ring", .digits = 2},
                      {.name = "Ring one way", .digits = 2},
                      {.name = "RHD", .digits = 2},
                      {.name = "Direct", .digits = 2},
                      {.name = "Ideal", .digits = 2},
                      {.name = "of the bound", .unit = "%", .digits = 1},
                      {.name = "made with"}}};
}

ResultTable IdealTimesTable(const Reading& reading) {
  return {.title = fmt::format("Times over the ideal: {}", reading.name),
          .label_name = "ranks (nodes)",
          .columns = {{.name = "ideal", .unit = "us", .digits = 1},
                      {.name = "TACOS", .digits = 3},
                      {.name = "any all-reduce, at least", .digits = 3},
                      {.name = "Ring", .digits = 2},
                      {.name = "Ring one way", .digits = 2},
                      {.name = "RHD", .digits = 2},
                      {.name = "Direct", .digits = 2}}};
}

// What the algorithms take on one size.
struct Times {
  Outcome ten;
  double ideal_s = 0;
  double ring_s = 0, one_way_ring_s = 0, rhd_s = 0, direct_s = 0;
  ResultCell taccl = {}, taccl_ms = {};
};

// By degree, 1 first; 2 only where a ring of degree 2 is possible.
Result<std::vector<Network>> Unwindings(int32_t nodes, const Reading& reading) {
  std::vector<Network> unwound;
  for (int32_t degree : {1, 2}) {
    if (degree >= nodes) break;
    Result<Network> network = MakeNetwork(
        fmt::format("unwind(rfs(2,4,{},{}),degree={})", nodes, reading.bandwidths, degree));
    if (!network) return tl::unexpected(network.error());
    unwound.push_back(*std::move(network));
  }
  return unwound;
}

Status MeasureBasics(const Network& network, int32_t nodes, Times& times) {
  const std::vector<NodeId> place = FirstDimensionFastest(std::array<int32_t, 3>{2, 4, nodes});
  for (const auto& [basic, seconds] : {std::pair(Basic::kRing, &times.ring_s),
                                       {Basic::kOneWayRing, &times.one_way_ring_s},
                                       {Basic::kRhd, &times.rhd_s},
                                       {Basic::kDirect, &times.direct_s}}) {
    const Result<Outcome> outcome = RunBasic(network, basic, {}, place);
    if (!outcome) return tl::unexpected(outcome.error());
    *seconds = outcome->time_s;
  }
  return {};
}

Status MeasureTaccl(const Network& network, const Printed& printed,
                    const ExperimentOptions& options, Times& times) {
  times.taccl_ms = Word("", printed.taccl_ms);
  if (printed.nodes * kRanksOfNode > kTacclRanks) {
    times.taccl = Word("too large", printed.taccl);
    return {};
  }
  if (!options.large) {
    times.taccl = Word("with --large", printed.taccl);
    return {};
  }
  const Result<Outcome> outcome = RunFastest(network, "taccl-like", std::array{1}, {});
  if (!outcome && outcome.error().code == ErrorCode::kCancelled)
    return tl::unexpected(outcome.error());
  times.taccl = outcome ? Measured(outcome->time_s / times.ten.time_s, printed.taccl)
                        : Word("none in its minute", printed.taccl);
  if (outcome) times.taccl_ms = Measured(1e3 * outcome->synthesis_s, printed.taccl_ms);
  return {};
}

Result<Times> MeasureSize(const Printed& printed, const Reading& reading,
                          const ExperimentOptions& options) {
  const Result<std::vector<Network>> unwound = Unwindings(printed.nodes, reading);
  if (!unwound) return tl::unexpected(unwound.error());
  // The ideal counts the hops of the degree-1 unwinding that the basic algorithms cross.
  const Network& first = unwound->front();
  Result<Outcome> ten = RunFastest(*unwound, "ten", TenChunks(first.topology, options), {});
  if (!ten) return tl::unexpected(ten.error());
  Times times{.ten = *std::move(ten), .ideal_s = first.IdealSeconds(kSize)};
  if (const Status basics = MeasureBasics(first, printed.nodes, times); !basics)
    return tl::unexpected(basics.error());
  if (const Status taccl = MeasureTaccl(first, printed, options, times); !taccl)
    return tl::unexpected(taccl.error());
  return times;
}

std::string Label(const Printed& printed) {
  return fmt::format("{} ({})", printed.nodes * kRanksOfNode, printed.nodes);
}

ResultRow TacosTimesRow(const Printed& printed, const Times& times) {
  const double ten_s = times.ten.time_s;
  return {
      Label(printed),
      {Measured(1e6 * ten_s), Measured(1e3 * times.ten.synthesis_s, printed.ten_ms), times.taccl,
       times.taccl_ms, Measured(times.ring_s / ten_s, printed.ring),
       Measured(times.one_way_ring_s / ten_s), Measured(times.rhd_s / ten_s, printed.rhd),
       Measured(times.direct_s / ten_s, printed.direct),
       Measured(times.ideal_s / ten_s, printed.ideal), Measured(100 * times.ten.bound_s / ten_s),
       Word(fmt::format("{}, {} chunks", times.ten.network, times.ten.chunks))}};
}

ResultRow IdealTimesRow(const Printed& printed, const Times& times) {
  const double ideal_s = times.ideal_s;
  return {Label(printed),
          {Measured(1e6 * ideal_s), Measured(times.ten.time_s / ideal_s),
           Measured(times.ten.bound_s / ideal_s), Measured(times.ring_s / ideal_s),
           Measured(times.one_way_ring_s / ideal_s, printed.ring_of_ideal),
           Measured(times.rhd_s / ideal_s, printed.rhd_of_ideal),
           Measured(times.direct_s / ideal_s, printed.direct_of_ideal)}};
}

// The two tables of one reading, and the rows of what the paper says of it.
Status AddReading(const Reading& reading, const ExperimentOptions& options, ResultTable& averages,
                  ExperimentResult& result) {
  ResultTable over_tacos = TacosTimesTable(reading), over_ideal = IdealTimesTable(reading);
  Average efficiency, over_ring, bound_efficiency;
  for (const Printed& printed : WithProgress("sizes of table 5", kPrinted)) {
    if (!WithinSize(options, printed.nodes * kRanksOfNode)) continue;
    const Result<Times> times = MeasureSize(printed, reading, options);
    if (!times) return tl::unexpected(times.error());
    over_tacos.rows.push_back(TacosTimesRow(printed, *times));
    over_ideal.rows.push_back(IdealTimesRow(printed, *times));
    efficiency.Add(100 * times->ideal_s / times->ten.time_s);
    bound_efficiency.Add(100 * times->ten.bound_s / times->ten.time_s);
    over_ring.Add(times->one_way_ring_s / times->ten.time_s);
  }
  averages.rows.push_back({fmt::format("{}: TACOS of the ideal, average (%)", reading.name),
                           {efficiency.Cell(kEfficiency)}});
  averages.rows.push_back({fmt::format("{}: TACOS of the proven bound, average (%)", reading.name),
                           {bound_efficiency.Cell()}});
  averages.rows.push_back({fmt::format("{}: TACOS over Ring one way, average", reading.name),
                           {over_ring.Cell(kOverRing)}});
  result.tables.push_back(std::move(over_tacos));
  result.tables.push_back(std::move(over_ideal));
  return {};
}

Result<ExperimentResult> Run(const ExperimentOptions& options) {
  if (CancelRequested()) return tl::unexpected(CancelledError());
  ResultTable averages{.title = "What the paper says of the table",
                       .label_name = "reading, quantity",
                       .columns = {{.name = "figure", .digits = 2}}};
  ExperimentResult result;
  for (const Reading& reading : WithProgress("readings of table 5", kReadings))
    if (const Status added = AddReading(reading, options, averages, result); !added)
      return tl::unexpected(added.error());
  result.tables.insert(result.tables.begin(), std::move(averages));
  result.notes.assign(kNotes.begin(), kNotes.end());
  return result;
}

}  // namespace
}  // namespace tacos_table5

Experiment TacosTable5() {
  return {"tacos-table5", "[tacos] table V",
          "all-reduce on 3D-RFS of 2 to 16 nodes, and which bandwidths can be the paper's",
          tacos_table5::Run};
}

}  // namespace tutti
