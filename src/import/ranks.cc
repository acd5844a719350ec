// Ranks of jobs: whether logs name all of them, or end before, and whether each has a GPU.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "merge.h"
#include "reader.h"

namespace tutti::import {
namespace {

// Hosts that other files than logs describe.
std::set<std::string> DescribedHosts(const std::vector<Facts>& files) {
  std::set<std::string> hosts;
  for (const Facts& file : files)
    for (const BoxFacts& box : file.boxes)
      if (file.ranks.empty()) hosts.insert(ShortName(box.host));
  return hosts;
}

using RanksByNumber = std::map<int64_t, const RankFact*>;

// "job.log:58: of 8 ranks 5 stand in the log, rank 5 does not (commId 0x7a3)".
std::string MissingText(const RanksByNumber& ranks, const RankFact& last) {
  int64_t missing = 0;
  for (const auto& [rank, unused] : ranks)
    if (rank == missing) ++missing;
  const bool is_one_log = std::all_of(ranks.begin(), ranks.end(), [&last](const auto& one) {
    return one.second->place.source == last.place.source;
  });
  return fmt::format(
      "{}: of {} ranks {} stand in the {}, rank {} does not{}", last.place.Text(), last.num_ranks,
      ranks.size(), is_one_log ? "log" : "logs", missing,
      last.communicator.empty() ? "" : fmt::format(" (commId {})", Shown(last.communicator)));
}

using Counts = std::map<std::string, size_t>;

Counts CountByHost(const RanksByNumber& ranks) {
  Counts counts;
  for (const auto& [number, rank] : ranks) ++counts[ShortName(rank->host)];
  return counts;
}

}  // namespace

Status CheckRanks(const std::vector<Facts>& files, const std::vector<Box>& boxes, Ledger& ledger) {
  struct Communicator {
    RanksByNumber ranks;
    const RankFact* last = nullptr;
  };
  std::map<std::pair<std::string, int64_t>, Communicator> communicators;
  for (const Facts& file : files)
    for (const RankFact& rank : file.ranks) {
      Communicator& one = communicators[{rank.communicator, rank.num_ranks}];
      if (one.ranks.emplace(rank.rank, &rank).second) one.last = &rank;
    }
  std::map<std::string, const Box*> by_host;
  for (const Box& box : boxes) by_host.emplace(ShortName(box.facts.host), &box);
  // Of each host: the ranks of the largest communicator that is whole and has all its GPUs.
  std::map<std::string, int64_t> whole;
  for (const auto& [key, one] : communicators)
    for (const auto& [host, count] : CountByHost(one.ranks)) {
      const auto found = by_host.find(host);
      if (found == by_host.end()) continue;
      const BoxFacts& box = found->second->facts;
      if (count > box.gpus.size())  // a GPU has one rank of a communicator
        return InvalidArgument(fmt::format(
            "{}: {} GPUs ({}), but {} ranks of one communicator ({}); give logs of several "
            "processes of a host as one file",
            box.host, box.gpus.size(), box.place.Text(), count, one.last->place.Text()));
      if (count == box.gpus.size() && static_cast<int64_t>(one.ranks.size()) == key.second)
        whole[host] = std::max(whole[host], key.second);
    }
  const std::set<std::string> described = DescribedHosts(files);
  int64_t num_warned = 0;
  std::string warning;
  for (const auto& [key, one] : communicators) {
    const int64_t num_ranks = key.second;
    if (static_cast<int64_t>(one.ranks.size()) == num_ranks) continue;
    const Counts counts = CountByHost(one.ranks);
    // Without a name it may be the whole one itself, of which some lines have one.
    const int64_t least = num_ranks + (key.first.empty() ? 0 : 1);
    const bool is_known = std::all_of(counts.begin(), counts.end(), [&](const auto& host) {
      const auto found = whole.find(host.first);
      return described.contains(host.first) || (found != whole.end() && found->second >= least);
    });
    const std::string text = MissingText(one.ranks, *one.last);
    if (!is_known)
      return InvalidArgument(
          text + "; give the whole log, and those of all hosts, or files that describe the hosts");
    if (num_warned++ == 0) warning = text;
  }
  if (num_warned > 0)
    ledger.warnings.push_back(
        warning + (num_warned > 1 ? fmt::format("; the same of {} others", num_warned - 1) : ""));
  return {};
}

}  // namespace tutti::import
