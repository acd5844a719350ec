#include "executed.h"

#include <algorithm>
#include <map>

namespace tutti {
namespace {

using LinkOfPair = std::map<std::pair<int32_t, int32_t>, int32_t>;

LinkOfPair FirstLinks(const Topology& topology) {
  LinkOfPair first;
  for (const LinkId link : topology.Links())
    first.try_emplace({topology.tail(link).value, topology.head(link).value}, link.value);
  return first;
}

// The pairs that messages are between, in order; empty where the topology's links join all of them.
std::vector<std::pair<int32_t, int32_t>> PairsWithoutLinks(
    const LinkOfPair& links, const std::vector<PageExecuted>& messages) {
  std::vector<std::pair<int32_t, int32_t>> pairs;
  bool joined = true;
  for (const PageExecuted& message : messages) {
    pairs.emplace_back(message.from, message.to);
    joined = joined && links.contains(pairs.back());
  }
  if (joined) return {};
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  return pairs;
}

// The most messages that lie between their start and their end at one time.
int32_t MostAtOnce(const std::vector<SimMessage>& messages) {
  std::vector<std::pair<double, int32_t>> changes;  // ends before starts
  for (const SimMessage& message : messages) {
    changes.emplace_back(message.start_s, 1);
    changes.emplace_back(message.arrive_s, -1);
  }
  std::sort(changes.begin(), changes.end());
  int32_t now = 0, most = 0;
  for (const auto& change : changes) most = std::max(most, now += change.second);
  return most;
}

}  // namespace

ExecutedRun RunOf(const Topology& topology, const Collective& collective, int64_t size_bytes,
                  const std::vector<PageExecuted>& messages) {
  LinkOfPair links = FirstLinks(topology);
  ExecutedRun run{PairsWithoutLinks(links, messages), {}};
  if (!run.pairs.empty()) links.clear();
  for (const auto& pair : run.pairs) links.emplace(pair, static_cast<int32_t>(links.size()));
  SimReport& report = run.report;
  const auto count =
      run.pairs.empty() ? static_cast<size_t>(topology.num_links()) : run.pairs.size();
  report.link_busy_s.assign(count, 0);
  report.link_bytes.assign(count, 0);
  for (const PageExecuted& message : messages) {
    const LinkId link{links.at({message.from, message.to})};
    report.link_busy_s[link.index()] += message.busy_s;
    report.link_bytes[link.index()] += message.bytes;
    report.time_s = std::max(report.time_s, message.end_s);
    report.trace.push_back({.link = link,
                            .step = message.step,
                            .start_s = message.start_s,
                            .free_s = message.end_s,
                            .arrive_s = message.end_s,
                            .bytes = message.bytes});
  }
  std::stable_sort(report.trace.begin(), report.trace.end(),
                   [](const SimMessage& a, const SimMessage& b) { return a.start_s < b.start_s; });
  report.messages = std::ssize(messages);
  report.max_in_flight = MostAtOnce(report.trace);
  if (report.time_s > 0) {
    report.algbw = static_cast<double>(size_bytes) / report.time_s;
    report.busbw = report.algbw * collective.BusFactor().ToDouble();
  }
  return run;
}

}  // namespace tutti
