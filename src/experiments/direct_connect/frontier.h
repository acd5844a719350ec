// The frontier that the topology finder has today, laid beside the networks of table 7.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "experiment.h"
#include "networks.h"
#include "tutti/base/rational.h"
#include "tutti/base/result.h"
#include "tutti/design/finder.h"

namespace tutti::direct {

// For degree 4 and one-way links, as in the paper.
Result<std::vector<Design>> FrontierOf(int32_t ranks,
                                       CollectiveKind collective = CollectiveKind::kAllGather);

// (TL, TB) of an all-gather.
struct Cost {
  int32_t tl = 0;
  Rational tb;
  friend bool operator==(const Cost&, const Cost&) = default;
};
// Nowhere worse and somewhere better.
bool Dominates(const Cost& a, const Cost& b);

// A printed network with the exact cost of its schedule as we make it; only where that is the
// printed one.
struct PrintedCost {
  std::string recipe;
  Cost cost;
};

// What a network of ours is beside the printed ones of its size: "dominates 2 of 3", "same cost as
// one", "beaten by 1 of 3", or "adds to the frontier".
std::string Standing(const Cost& ours, const std::vector<PrintedCost>& printed);

// What the finder has for a printed network: "same cost", "dominated by R", or "missed".
std::string Reached(const Cost& printed, const std::vector<Design>& frontier);

// Messages of parts that could not be had, each once, with whose they are.
class Reasons {
 public:
  // "none", and the reason is kept.
  ResultCell Cell(const std::string& whose, const Error& error, std::string paper = "");
  void AppendTo(std::vector<std::string>& notes) const;

 private:
  std::map<std::string, std::string> by_message_;  // to whose they are
};

ResultCell FlowCell(const std::string& recipe, const Result<Flow>& flow, std::string paper,
                    Reasons& reasons);
// Measured figures of one recipe as cells TL, TB, diameter and f beside the printed ones.
void AppendFigures(const std::string& recipe, const NetworkFigures& figures,
                   const PrintedNetwork& printed, Reasons& reasons, std::vector<ResultCell>& cells);
std::vector<ResultColumn> FigureColumns();
// Our schedule costs what the paper prints.
bool HasPrintedCost(const NetworkFigures& figures, const PrintedNetwork& printed);

}  // namespace tutti::direct
