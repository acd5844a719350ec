#include "alltoall/chunk_router.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "tutti/base/cancel.h"
#include "tutti/base/check.h"
#include "tutti/base/random.h"
#include "tutti/graph/distance.h"

namespace tutti::tsmcf {
namespace {

// Sharpness, in mean chunks: where it begins, what each pass leaves of it, where it ends.
constexpr double kFirstSharpness = 8, kSharpen = 0.8, kLastSharpness = 0.15;
// Passes without a better schedule after which it is over.
constexpr int32_t kPatience = 12;
// Part of a chunk's time: enough to prefer the shorter of two paths that load nothing.
constexpr double kHopCost = 1e-4;

// 2^x with the same bits everywhere; accurate to 10^-8.
double Exp2(double x) {
  if (x < -500) return 0;
  x = std::min(x, 500.0);
  const double whole = std::floor(x);
  const double y = (x - whole) * 0.69314718055994530942;
  double sum = 1;
  for (int i = 10; i >= 1; --i) sum = 1 + sum * y / i;
  return std::ldexp(sum, static_cast<int>(whole));
}

// log2(1 + x) for x >= 0, the same way.
double Log2OfOnePlus(double x) {
  constexpr double kTwoOverLn2 = 2.88539008177792681472, kRootOfHalf = 0.70710678118654752440;
  if (x < 1e-6) return x * (kTwoOverLn2 / 2);
  int exponent = 0;
  double part = std::frexp(1 + x, &exponent);
  if (part < kRootOfHalf) {
    part *= 2;
    --exponent;
  }
  const double z = (part - 1) / (part + 1), zz = z * z;
  return exponent + kTwoOverLn2 * z * (1 + zz * (1.0 / 3 + zz * (0.2 + zz * (1.0 / 7 + zz / 9))));
}

}  // namespace

ChunkRouter::ChunkRouter(const StepNetwork& network, std::vector<Chunk> chunks,
                         const RouterLimits& limits)
    : network_(network),
      chunks_(std::move(chunks)),
      limits_(limits),
      steps_(static_cast<size_t>(limits.steps)),
      carriers_(network.carriers.size()),
      way_of_(chunks_.size() * steps_, kWaits),
      best_objective_(std::numeric_limits<double>::infinity()),
      load_(steps_ * carriers_, 0),
      heat_(load_.size(), 0),
      total_(steps_, 0),
      origin_(steps_, 0),
      growth_(carriers_, 0),
      cost_(static_cast<size_t>(network.topology.num_nodes()), 0),
      next_cost_(cost_.size(), 0),
      seen_(cost_.size(), 0),
      came_by_(steps_ * cost_.size(), kWaits),
      way_(steps_, kWaits) {}

double ChunkRouter::Objective() const {
  double sum = 0;
  for (size_t step = 0; step < steps_; ++step) {
    double busiest = 0;
    for (size_t c = 0; c < carriers_; ++c)
      busiest = std::max(busiest, static_cast<double>(load_[step * carriers_ + c]) *
                                      network_.carriers[c].unit_time);
    sum += busiest;
  }
  return sum;
}

// Counts all heat anew, from the busiest carrier of each step.
void ChunkRouter::SetSharpness(double sharpness) {
  sharpness_ = sharpness;
  weight_ = 0;
  for (size_t step = 0; step < steps_; ++step) {
    const auto time = [&](size_t c) {
      return static_cast<double>(load_[step * carriers_ + c]) * network_.carriers[c].unit_time;
    };
    origin_[step] = total_[step] = 0;
    for (size_t c = 0; c < carriers_; ++c) origin_[step] = std::max(origin_[step], time(c));
    for (size_t c = 0; c < carriers_; ++c) {
      double& heat = heat_[step * carriers_ + c];
      heat = network_.carriers[c].members * Exp2((time(c) - origin_[step]) / sharpness_);
      total_[step] += heat;
    }
  }
}

void ChunkRouter::Put(const Chunk& chunk, const int32_t* way, int64_t sign) {
  for (size_t step = 0; step < steps_; ++step) {
    if (way[step] == kWaits) continue;
    for (int32_t carrier : network_.of_link[static_cast<size_t>(way[step])]) {
      if (carrier == kNoCarrier) continue;
      const auto c = static_cast<size_t>(carrier);
      int64_t& load = load_[step * carriers_ + c];
      load += sign * chunk.weight;
      const double time = static_cast<double>(load) * network_.carriers[c].unit_time;
      double& heat = heat_[step * carriers_ + c];
      total_[step] -= heat;
      heat = network_.carriers[c].members * Exp2((time - origin_[step]) / sharpness_);
      total_[step] += heat;
    }
  }
}

void ChunkRouter::UseWeight(int64_t weight) {
  if (weight == weight_) return;
  weight_ = weight;
  for (size_t c = 0; c < carriers_; ++c)
    growth_[c] =
        Exp2(static_cast<double>(weight) * network_.carriers[c].unit_time / sharpness_) - 1;
}

// What a chunk of weight_ over this link adds to the potential.
double ChunkRouter::CostOf(size_t step, int32_t link) const {
  double more = 0;
  for (int32_t carrier : network_.of_link[static_cast<size_t>(link)])
    if (carrier != kNoCarrier)
      more += heat_[step * carriers_ + static_cast<size_t>(carrier)] *
              growth_[static_cast<size_t>(carrier)];
  return sharpness_ * Log2OfOnePlus(more / std::max(total_[step], 1e-300)) + hop_cost_;
}

double ChunkRouter::CostOfWay(const Chunk& chunk, const int32_t* way) {
  UseWeight(chunk.weight);
  double cost = 0;
  for (size_t step = 0; step < steps_; ++step)
    if (way[step] != kWaits) cost += CostOf(step, way[step]);
  return cost;
}

double ChunkRouter::FindWay(const Chunk& chunk) {
  UseWeight(chunk.weight);
  hop_cost_ = kHopCost * static_cast<double>(chunk.weight);
  const Topology& topology = network_.topology;
  const std::vector<int32_t>& left = network_.hops_to[chunk.destination.index()];
  const std::vector<int32_t>& gone = network_.hops_from[chunk.source.index()];
  const int32_t most = left[chunk.source.index()] + limits_.detour;
  const std::vector<bool>* allowed =
      limits_.flow_links == nullptr ? nullptr : &(*limits_.flow_links)[chunk.source.index()];
  level_ = {chunk.source};
  cost_[chunk.source.index()] = 0;
  const size_t nodes = cost_.size();
  for (size_t step = 0; step < steps_; ++step) {
    const auto steps_after = static_cast<int32_t>(steps_ - step - 1);
    next_level_.clear();
    ++stamp_;
    const auto reach = [&](NodeId node, double cost, int32_t by) {
      const size_t v = node.index();
      if (seen_[v] != stamp_) {
        seen_[v] = stamp_;
        next_level_.push_back(node);
      } else if (next_cost_[v] <= cost) {
        return;
      }
      next_cost_[v] = cost;
      came_by_[step * nodes + v] = by;
    };
    for (NodeId node : level_) {
      const double cost = cost_[node.index()];
      if (left[node.index()] <= steps_after) reach(node, cost, kWaits);
      if (node == chunk.destination) continue;
      for (LinkId link : topology.OutLinks(node)) {
        const NodeId head = topology.head(link);
        const int32_t more = left[head.index()];
        if (more == kUnreachable || more > steps_after || gone[head.index()] + more > most)
          continue;
        if (allowed != nullptr && !(*allowed)[link.index()]) continue;
        reach(head, cost + CostOf(step, link.value), link.value);
      }
      work_ += topology.OutLinks(node).size();
    }
    std::swap(level_, next_level_);
    std::swap(cost_, next_cost_);
  }
  NodeId node = chunk.destination;
  for (size_t step = steps_; step-- > 0;) {
    way_[step] = came_by_[step * nodes + node.index()];
    if (way_[step] != kWaits) node = topology.tail(LinkId{way_[step]});
  }
  TUTTI_CHECK(node == chunk.source);
  return cost_[chunk.destination.index()];
}

// Sends every chunk anew, in an order that differs from pass to pass.
bool ChunkRouter::Pass(std::vector<uint32_t>& order, bool first, Random& random) {
  for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
  bool changed = false;
  for (uint32_t c : order) {
    if (CancelRequested()) return false;
    const Chunk& chunk = chunks_[c];
    int32_t* way = way_of_.data() + c * steps_;
    if (!first) Put(chunk, way, -1);
    const double cost = FindWay(chunk);
    if (first || cost < CostOfWay(chunk, way) - 1e-9 * sharpness_) {
      std::copy(way_.begin(), way_.end(), way);
      changed = true;
    }
    Put(chunk, way, 1);
  }
  return changed;
}

void ChunkRouter::Run() {
  if (chunks_.empty()) {
    best_objective_ = 0;
    return;
  }
  double mean = 0, unit = 0;
  for (const Chunk& chunk : chunks_) mean += static_cast<double>(chunk.weight);
  mean /= static_cast<double>(chunks_.size());
  for (const Carrier& carrier : network_.carriers) unit = std::max(unit, carrier.unit_time);
  const double last = kLastSharpness * mean * unit;
  double sharpness = kFirstSharpness * mean * unit;
  std::vector<uint32_t> order(chunks_.size());
  std::iota(order.begin(), order.end(), 0U);
  Random random(limits_.seed);
  int32_t patience = kPatience;
  for (bool first = true;; first = false) {
    SetSharpness(sharpness);
    const bool changed = Pass(order, first, random);
    if (CancelRequested()) return;
    const double objective = Objective();
    if (objective < best_objective_ * (1 - 1e-12)) {
      best_objective_ = objective;
      best_ = way_of_;
      patience = kPatience;
    } else if (sharpness <= last && (--patience == 0 || !changed)) {
      return;
    }
    if (work_ > limits_.work || best_objective_ <= limits_.enough) return;
    sharpness = std::max(last, sharpness * kSharpen);
  }
}

}  // namespace tutti::tsmcf
