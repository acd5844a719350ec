// Boxes: what several files say of one host, joined.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "merge.h"
#include "text.h"
#include "tutti/base/host_name.h"
#include "tutti/base/units.h"

namespace tutti::import {
namespace {

tl::unexpected<Error> Conflict(const std::string& host, const std::string& one,
                               const FactPlace& first, const std::string& other,
                               const FactPlace& second) {
  return InvalidArgument(
      fmt::format("{}: {} ({}), but {} ({})", host, one, first.Text(), other, second.Text()));
}

// NVLinks of each pair; of a GPU to an NVSwitch.
class NvlinkSums {
 public:
  explicit NvlinkSums(const BoxFacts& box) : box_(box) {
    for (const NvlinkFact& link : box.nvlinks) {
      const auto [found, is_new] = sums_.emplace(std::pair(link.gpu, link.peer), link);
      if (!is_new) found->second.links += link.links;
    }
  }
  const std::map<std::pair<int32_t, int32_t>, NvlinkFact>& sums() const { return sums_; }
  // None, where none is said.
  NvlinkFact Of(int32_t gpu, int32_t peer) const {
    const auto found = sums_.find({gpu, peer});
    if (found != sums_.end()) return found->second;
    const FactPlace& row = box_.gpus[static_cast<size_t>(gpu)].place;
    const FactPlace& all = box_.all_nvlinks;
    return {gpu, peer, 0, all.source.empty() || all.source == row.source ? row : all};
  }

 private:
  const BoxFacts& box_;
  std::map<std::pair<int32_t, int32_t>, NvlinkFact> sums_;
};

std::string PairText(const NvlinkFact& links) {
  const std::string peer =
      links.peer == kNvSwitch ? "the NVSwitch" : fmt::format("GPU {}", links.peer);
  return fmt::format("{} NVLinks between GPU {} and {}", links.links, links.gpu, peer);
}

bool UsesNvSwitch(const BoxFacts& box) {
  return std::any_of(box.nvlinks.begin(), box.nvlinks.end(),
                     [](const NvlinkFact& link) { return link.peer == kNvSwitch; });
}

// A matrix says of GPUs around an NVSwitch that each pair has as many NVLinks as each GPU: of the
// two, as many as the one with fewer.
Status CompareWithSwitch(const BoxFacts& direct, const BoxFacts& switched, bool direct_is_first) {
  const NvlinkSums pairs(direct), ups(switched);
  const auto gpus = static_cast<int32_t>(direct.gpus.size());
  for (int32_t a = 0; a < gpus; ++a)
    for (int32_t b = a + 1; b < gpus; ++b) {
      const NvlinkFact pair = pairs.Of(a, b);
      const NvlinkFact one = ups.Of(a, kNvSwitch), other = ups.Of(b, kNvSwitch);
      const NvlinkFact& up = other.links < one.links ? other : one;
      const int32_t beside = ups.Of(a, b).links;
      if (pair.links == up.links + beside) continue;
      const std::string also = beside == 0 ? "" : fmt::format(" and {} direct", beside);
      if (direct_is_first)
        return Conflict(direct.host, PairText(pair), pair.place,
                        fmt::format("{} to the NVSwitch{}", up.links, also), up.place);
      return Conflict(direct.host, PairText(up) + also, up.place, PairText(pair), pair.place);
    }
  return {};
}

Status CompareNvlinks(const BoxFacts& box, const BoxFacts& more) {
  const auto says_nothing = [](const BoxFacts& one) {
    return one.nvlinks.empty() && one.all_nvlinks.source.empty();
  };
  if (says_nothing(box) || says_nothing(more)) return {};
  if (UsesNvSwitch(box) != UsesNvSwitch(more))
    return UsesNvSwitch(more) ? CompareWithSwitch(box, more, true)
                              : CompareWithSwitch(more, box, false);
  const NvlinkSums mine(box), theirs(more);
  for (const NvlinkSums* sums : {&mine, &theirs})
    for (const auto& [pair, unused] : sums->sums()) {
      const NvlinkFact one = mine.Of(pair.first, pair.second);
      const NvlinkFact other = theirs.Of(pair.first, pair.second);
      if (one.links != other.links)
        return Conflict(box.host, PairText(one), one.place, PairText(other), other.place);
    }
  return {};
}

void JoinNic(const std::string& host, NicFact& nic, const NicFact& more, Ledger& ledger) {
  if (nic.guid.empty()) nic.guid = more.guid;
  if (more.bandwidth == 0) return;
  if (nic.bandwidth != 0 && nic.bandwidth != more.bandwidth)
    ledger.warnings.push_back(fmt::format("{}: {} has {} ({}), but {} ({}); the smaller is taken",
                                          host, nic.name, ReadableBandwidth(nic.bandwidth),
                                          nic.place.Text(), ReadableBandwidth(more.bandwidth),
                                          more.place.Text()));
  if (nic.bandwidth == 0 || more.bandwidth < nic.bandwidth) {
    nic.bandwidth = more.bandwidth;
    nic.place = more.place;
  }
}

// The GPUs that a NIC is nearest to.
std::vector<size_t> NearestGpus(const BoxFacts& box, size_t nic) {
  std::vector<size_t> nearest;
  PathClass best = PathClass::kSys;
  for (size_t gpu = 0; gpu < box.gpus.size(); ++gpu) {
    const PathClass path = box.ClassOf(gpu, box.gpus.size() + nic);
    if (path < best) nearest.clear();
    best = std::min(best, path);
    if (path == best) nearest.push_back(gpu);
  }
  return nearest;
}

// Files see bridges and switches more or less finely, so that one may say of a NIC that it is
// nearest to more GPUs than the other does; but none that is in both cannot be.
Status CompareNearest(const BoxFacts& box, size_t nic, const BoxFacts& more, size_t same) {
  if (box.classes.empty() || more.classes.empty() || box.gpus.empty()) return {};
  const std::vector<size_t> mine = NearestGpus(box, nic), theirs = NearestGpus(more, same);
  if (std::find_first_of(mine.begin(), mine.end(), theirs.begin(), theirs.end()) != mine.end())
    return {};
  return Conflict(box.host, fmt::format("{} is nearest to GPU {}", box.nics[nic].name, mine[0]),
                  box.nics[nic].place, fmt::format("to GPU {}", theirs[0]), more.nics[same].place);
}

// The NICs of the file whose classes are taken, and then what the other says of them.
Status JoinNics(BoxFacts& box, BoxFacts more, Ledger& ledger) {
  FactPlace place = box.place;
  if (box.nics.empty() || (box.classes.empty() && !more.classes.empty() && !more.nics.empty())) {
    if (more.nics.empty()) return {};
    std::swap(box.nics, more.nics);
    std::swap(box.classes, more.classes);
    place = more.place;
  }
  for (size_t i = 0; i < more.nics.size(); ++i) {
    const NicFact& nic = more.nics[i];
    const auto same = std::find_if(box.nics.begin(), box.nics.end(), [&nic](const NicFact& mine) {
      return mine.name == nic.name || (!mine.guid.empty() && mine.guid == nic.guid);
    });
    if (same == box.nics.end()) {
      ledger.warnings.push_back(fmt::format("{}: NIC {} ({}) is not in {} and left out", box.host,
                                            nic.name, nic.place.Text(), place.Text()));
      continue;
    }
    const auto mine = static_cast<size_t>(same - box.nics.begin());
    if (Status status = CompareNearest(box, mine, more, i); !status) return status;
    JoinNic(box.host, *same, nic, ledger);
  }
  return {};
}

Status JoinInto(BoxFacts& box, const BoxFacts& more, Ledger& ledger) {
  if (box.gpus.size() != more.gpus.size())
    return Conflict(box.host, fmt::format("{} GPUs", box.gpus.size()), box.place,
                    fmt::format("{} GPUs", more.gpus.size()), more.place);
  if (Status status = CompareNvlinks(box, more); !status) return status;
  for (size_t i = 0; i < box.gpus.size(); ++i) {
    if (box.gpus[i].sm == 0) box.gpus[i].sm = more.gpus[i].sm;
    if (box.gpus[i].pcie_bandwidth == 0) box.gpus[i].pcie_bandwidth = more.gpus[i].pcie_bandwidth;
  }
  if (box.nvlinks.empty() || (!UsesNvSwitch(box) && UsesNvSwitch(more))) box.nvlinks = more.nvlinks;
  if (box.all_nvlinks.source.empty()) box.all_nvlinks = more.all_nvlinks;
  return JoinNics(box, more, ledger);
}

}  // namespace

std::string ShortName(const std::string& host) { return Lower(ShortHostName(host)); }

void AppendNic(BoxFacts& box, NicFact nic) {
  const size_t before = box.num_devices();
  box.nics.push_back(std::move(nic));
  if (box.classes.empty()) return;
  const size_t now = before + 1;
  std::vector<PathClass> classes(now * now, PathClass::kSys);
  for (size_t i = 0; i < before; ++i)
    for (size_t j = 0; j < before; ++j) classes[i * now + j] = box.classes[i * before + j];
  classes.back() = PathClass::kSelf;
  box.classes = std::move(classes);
}

Result<std::vector<Box>> JoinBoxes(const std::vector<Facts>& files, Ledger& ledger) {
  std::vector<Box> boxes;
  std::map<std::string, size_t> by_host;
  for (const Facts& file : files) {
    for (const std::string& note : file.notes) ledger.warnings.push_back(note);
    for (const BoxFacts& facts : file.boxes) {
      if (facts.host.empty())
        return InvalidArgument(
            fmt::format("{}: nobody says which host this is", facts.place.Text()));
      const auto [found, is_new] = by_host.emplace(ShortName(facts.host), boxes.size());
      if (is_new) {
        boxes.push_back({.facts = facts});
        continue;
      }
      if (Status status = JoinInto(boxes[found->second].facts, facts, ledger); !status)
        return tl::unexpected(status.error());
    }
  }
  // A host without GPUs is one rank, with all its NICs.
  for (Box& box : boxes) {
    if (!box.facts.gpus.empty()) continue;
    box.is_bare = true;
    box.facts.gpus.push_back({.place = box.facts.place});
    box.facts.classes.clear();
  }
  return boxes;
}

}  // namespace tutti::import
