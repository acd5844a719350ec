// A second judge, as slow and as plain as possible: a std::set of contributions for every node,
// shard and single unit, states copied whole at each instant, times as rationals. It shares nothing
// with the verifier but the words of the rules, and says only yes or no.
#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <vector>

#include "tutti/sched/schedule.h"

namespace tutti::hand {

class Oracle {
 public:
  Oracle(const Topology& topology, const Schedule& schedule)
      : topology_(topology), schedule_(schedule), collective_(schedule.collective) {}

  bool Accepts() {
    if (schedule_.topology_fingerprint != topology_.Fingerprint()) return false;
    for (size_t i = 0; i < schedule_.transfers.size(); ++i)
      if (!WellFormed(i)) return false;
    for (ShardId shard : collective_.Shards())
      for (NodeId rank : topology_.Ranks())
        if (collective_.contributors(shard).Contains(rank))
          for (int32_t unit = 0; unit < schedule_.units_per_shard; ++unit)
            state_[{rank.value, shard.value, unit}] = {rank.value};
    return LinksCarryOneAtATime() && Runs() && Finished();
  }

 private:
  using Cell = std::tuple<int32_t, int32_t, int32_t>;  // node, shard, unit
  using Value = std::set<int32_t>;
  struct Write {
    Cell cell;
    TransferOp op;
    Value value;
  };

  bool WellFormed(size_t i) const {
    const Transfer& t = schedule_.transfers[i];
    if (t.link.value < 0 || t.link.value >= topology_.num_links()) return false;
    if (t.shard.value < 0 || t.shard.value >= collective_.num_shards()) return false;
    if (t.begin < 0 || t.end <= t.begin || t.end > schedule_.units_per_shard) return false;
    if (Timed() ? t.step != 0 : t.step < 0 || t.step >= schedule_.num_steps) return false;
    if (Timed() && schedule_.start_ps[i] < 0) return false;
    if (i > 0 && Begins(i) < Begins(i - 1)) return false;
    return t.op == TransferOp::kCopy ||
           (collective_.reduces() && topology_.is_rank(topology_.head(t.link)));
  }

  bool Timed() const { return schedule_.kind == ScheduleKind::kTimed; }
  Rational Begins(size_t i) const {
    return Timed() ? Rational(schedule_.start_ps[i]) : Rational(schedule_.transfers[i].step);
  }
  Rational OnWire(size_t i) const {
    const Transfer& t = schedule_.transfers[i];
    const Rational bytes = collective_.ShardBytes(t.shard, schedule_.size_bytes) *
                           Rational(t.units(), schedule_.units_per_shard);
    return BandwidthPs(bytes, topology_.bandwidth(t.link));
  }
  Rational Ends(size_t i) const {
    if (!Timed()) return Begins(i) + Rational(1, 2);
    return Begins(i) + topology_.alpha_ps(schedule_.transfers[i].link) + OnWire(i);
  }

  bool LinksCarryOneAtATime() const {
    if (!Timed()) return true;
    const auto free = [this](size_t i) {
      return schedule_.link_model == LinkModel::kHeld ? Ends(i) : Begins(i) + OnWire(i);
    };
    for (size_t a = 0; a < schedule_.transfers.size(); ++a)
      for (size_t b = 0; b < a; ++b)
        if (schedule_.transfers[a].link == schedule_.transfers[b].link && Begins(a) < free(b) &&
            Begins(b) < free(a))
          return false;
    return true;
  }

  bool Runs() {
    std::set<Rational> instants;
    for (size_t i = 0; i < schedule_.transfers.size(); ++i) {
      instants.insert(Begins(i));
      instants.insert(Ends(i));
    }
    std::map<size_t, std::vector<Write>> under_way;
    for (const Rational& now : instants) {
      std::vector<Write> writes;
      for (auto& [i, carried] : under_way)
        if (Ends(i) == now) writes.insert(writes.end(), carried.begin(), carried.end());
      if (!Apply(writes)) return false;
      for (size_t i = 0; i < schedule_.transfers.size(); ++i) {
        if (Begins(i) != now) continue;
        const Transfer& t = schedule_.transfers[i];
        for (int32_t unit = t.begin; unit < t.end; ++unit) {
          const Value& value = state_[{topology_.tail(t.link).value, t.shard.value, unit}];
          if (value.empty()) return false;
          under_way[i].push_back(
              {{topology_.head(t.link).value, t.shard.value, unit}, t.op, value});
        }
      }
    }
    return true;
  }

  bool Apply(const std::vector<Write>& writes) {
    std::map<Cell, std::vector<const Write*>> by_cell;
    for (const Write& write : writes) by_cell[write.cell].push_back(&write);
    for (const auto& [cell, at_once] : by_cell) {
      Value& held = state_[cell];
      const bool is_rank = std::get<0>(cell) < topology_.num_ranks();
      for (const Write* write : at_once) {
        if (write->op == TransferOp::kReduce) {
          for (int32_t rank : write->value)
            if (!held.insert(rank).second) return false;
        } else {
          // The same bytes may pass a switch once for each receiver, two values not at once.
          if (is_rank ? at_once.size() > 1 || held == write->value
                      : write->value != at_once.front()->value)
            return false;
          if (is_rank &&
              !std::includes(write->value.begin(), write->value.end(), held.begin(), held.end()))
            return false;
          held = write->value;
        }
      }
      const bool copies = std::any_of(at_once.begin(), at_once.end(), [](const Write* write) {
        return write->op == TransferOp::kCopy;
      });
      if (is_rank && copies && at_once.size() > 1) return false;
    }
    return true;
  }

  bool Finished() {
    for (ShardId shard : collective_.Shards()) {
      if (collective_.weight(shard) == 0) continue;
      Value all;
      for (NodeId rank : topology_.Ranks())
        if (collective_.contributors(shard).Contains(rank)) all.insert(rank.value);
      for (NodeId rank : topology_.Ranks())
        for (int32_t unit = 0; unit < schedule_.units_per_shard; ++unit)
          if (collective_.destinations(shard).Contains(rank) &&
              state_[{rank.value, shard.value, unit}] != all)
            return false;
    }
    return true;
  }

  const Topology& topology_;
  const Schedule& schedule_;
  const Collective& collective_;
  std::map<Cell, Value> state_;
};

}  // namespace tutti::hand
