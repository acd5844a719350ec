// The log that NCCL_DEBUG=INFO writes, of one host or of several together: who has which GPUs and
// NICs, and with NCCL_DEBUG_SUBSYS=GRAPH,INIT,NET how they hang on PCIe. Rings, trees and channels
// are NCCL's choice and no network: left out. Speeds of NVLink stand there as
// NCCL expects to reach them, not as numbers of links: left out.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "reader.h"
#include "text.h"

namespace tutti::import {
namespace {

constexpr std::string_view kMark = " NCCL INFO ";

std::optional<int64_t> Hexadecimal(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) return std::nullopt;
  return value;
}

// NCCL prints an address as one number: domain, 8 bits of bus, 8 of device, 4 of function.
std::string AddressOf(int64_t id) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", id >> 20, (id >> 12) & 0xff, (id >> 4) & 0xff,
                     id & 0xf);
}

class NcclLogReader {
 public:
  NcclLogReader(std::string_view text, const std::string& source) : lines_(text), source_(source) {}

  Result<Facts> Read() {
    for (std::string_view line; lines_.Next(line);)
      if (Status status = ReadLine(line); !status) return tl::unexpected(status.error());
    Facts facts{.source = source_, .format = "nccl-log"};
    for (const std::string& name : order_) {
      Result<BoxFacts> box = MakeBox(name, hosts_.at(name));
      if (!box) return tl::unexpected(box.error());
      if (box->num_devices() > 0) facts.boxes.push_back(std::move(*box));
    }
    facts.ranks = std::move(ranks_);
    if (facts.boxes.empty())
      return FaultIn(source_, 0,
                     "no line names a GPU: NCCL_DEBUG=INFO writes them as ncclCommInitRank");
    if (has_nvlink_)
      facts.notes.push_back(fmt::format(
          "{}: NVLinks without their numbers: give `nvidia-smi topo -m`, too", source_));
    return facts;
  }

 private:
  struct Gpu {
    int64_t order = 0, line = 0;
  };
  struct Node {
    size_t column = 0;
    std::string name;
  };
  struct Host {
    int64_t line = 0;
    std::map<int64_t, Gpu> gpus;  // by address
    std::map<int64_t, NicFact> nics;
    // From the first process that prints them: what is around GPUs and NICs.
    std::string printed_by;
    bool is_printing = false, has_nvlink = false;
    std::vector<Node> path;
    std::map<int64_t, std::vector<std::string>> around_gpu, around_net;
  };

  tl::unexpected<Error> Fault(const std::string& message) const {
    return FaultIn(source_, lines_.number(), message);
  }

  // "node0:1234:1250 [3] NCCL INFO ...", behind a time in some versions.
  Status ReadLine(std::string_view line) {
    const size_t mark = line.find(kMark);
    if (mark == line.npos) return {};
    std::vector<std::string_view> words = Words(line.substr(0, mark));
    if (!words.empty() && words.back().starts_with("[")) words.pop_back();
    if (words.empty()) return {};
    const std::string_view process = words.back();
    const size_t colon = process.find(':');
    const std::string name(process.substr(0, colon));
    if (colon == process.npos || !IsNodeName(name)) return {};
    const auto [found, is_new] = hosts_.try_emplace(name);
    Host& host = found->second;
    if (is_new) {
      if (static_cast<int64_t>(hosts_.size()) > kMaxFacts)
        return Fault(fmt::format("more than {} hosts", kMaxFacts));
      host.line = lines_.number();
      order_.push_back(name);
    }
    const std::string id(process.substr(0, process.find_last_of(':')));
    return ReadMessage(line.substr(mark + kMark.size()), id, host);
  }

  Status ReadMessage(std::string_view message, const std::string& process, Host& host) {
    if (message.find(" busId ") != message.npos && message.find(" rank ") != message.npos) {
      if (Status status = ReadRank(message, host); !status) return status;
      return NoteRank(message, process.substr(0, process.find(':')));
    }
    if (message.starts_with("NET/") && message.find(": Using ") != message.npos)
      return ReadNics(message, host);
    if (message.starts_with("NVLS multicast support is available")) has_nvlink_ = true;
    if (message.starts_with("=== System")) {
      if (!host.printed_by.empty()) return {};
      host.is_printing = true;
      host.printed_by = process;
    } else if (message.starts_with("===")) {
      if (host.printed_by == process) host.is_printing = false;
    } else if (host.is_printing && host.printed_by == process) {
      return ReadTree(message, host);
    }
    return {};
  }

  static std::optional<std::string_view> Behind(const std::vector<std::string_view>& words,
                                                std::string_view key) {
    for (size_t i = 0; i + 1 < words.size(); ++i)
      if (words[i] == key) return words[i + 1];
    return std::nullopt;
  }

  // "ncclCommInitRank comm 0x5 rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId 3b000 commId ..."
  Status ReadRank(std::string_view message, Host& host) const {
    const std::vector<std::string_view> words = Words(message);
    const auto address = Hexadecimal(Behind(words, "busId").value_or(""));
    if (!address)
      return Fault(fmt::format("busId '{}', wanted hexadecimal digits",
                               Shown(Behind(words, "busId").value_or(""))));
    auto number = Behind(words, "nvmlDev");
    if (!number) number = Behind(words, "cudaDev");
    host.gpus.emplace(*address,
                      Gpu{Number(number.value_or("0"), 1 << 20).value_or(0), lines_.number()});
    if (static_cast<int64_t>(host.gpus.size()) > kMaxBoxDevices)
      return Fault(fmt::format("more than {} GPUs", kMaxBoxDevices));
    return {};
  }

  // Whose rank it is, once. Lines of an end ("Destroy COMPLETE") do not name the communicator: what
  // has ended is left out.
  Status NoteRank(std::string_view message, const std::string& host) {
    const std::vector<std::string_view> words = Words(message);
    const auto name = Behind(words, "commId");
    const auto rank = Number(Behind(words, "rank").value_or(""), kMaxFacts);
    const auto num_ranks = Number(Behind(words, "nranks").value_or(""), kMaxFacts);
    if (!rank || !num_ranks || (!name && message.find("Init ") == message.npos)) return {};
    if (*rank >= *num_ranks) return Fault(fmt::format("rank {} of {} ranks", *rank, *num_ranks));
    const std::string communicator(name.value_or(""));
    if (!seen_.emplace(communicator, *num_ranks, *rank).second) return {};
    if (static_cast<int64_t>(ranks_.size()) >= kMaxFacts)
      return Fault(fmt::format("more than {} ranks", kMaxFacts));
    ranks_.push_back({communicator, *rank, *num_ranks, host, {source_, lines_.number()}});
    return {};
  }

  // "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>"
  Status ReadNics(std::string_view message, Host& host) const {
    message = message.substr(message.find(": Using ") + 8);
    message = message.substr(0, message.find(';'));
    for (std::string_view word : Words(message)) {
      const size_t bracket = word.find(']');
      if (!word.starts_with("[") || bracket == word.npos || bracket + 1 == word.size()) continue;
      const auto number = Number(word.substr(1, bracket - 1), kMaxBoxDevices);
      std::string_view name = word.substr(bracket + 1);
      name = name.substr(0, name.find(':'));
      if (!number || !IsNodeName(name))
        return Fault(fmt::format("found '{}', wanted [NUMBER]NAME:PORT", Shown(word)));
      const auto [known, is_new] = host.nics.try_emplace(*number);
      if (!is_new && known->second.name != name)
        return Fault(fmt::format("NIC {} is {}, but {} in line {}", *number, name,
                                 known->second.name, known->second.place.line));
      if (is_new) known->second = {.name = std::string(name), .place = {source_, lines_.number()}};
    }
    return {};
  }

  // "CPU/0-0 (1/1/2)", then "+ PCI[24.0] - GPU/0-3b000 (0)", "+ NET[50.0] - NET/0-2 (...)", further
  // to the right the further down.
  Status ReadTree(std::string_view message, Host& host) {
    constexpr size_t kMaxDeep = 64;
    const size_t plus = message.find("+ ");
    const size_t start = message.find_first_not_of(' ');
    if (start == message.npos) return {};
    std::string_view node = message.substr(start), kind;
    size_t column = 0;
    double speed = 0;
    if (plus == start) {
      const size_t dash = message.find("] - "), bracket = message.find('[');
      if (dash == message.npos || bracket == message.npos || bracket > dash)
        return Fault("wanted '+ LINK[GB/s] - NODE'");
      kind = message.substr(plus + 2, bracket - plus - 2);
      speed = std::strtod(std::string(message.substr(bracket + 1, dash - bracket - 1)).c_str(),
                          nullptr);
      node = message.substr(dash + 4);
      column = plus + 1;
    }
    node = node.substr(0, node.find(' '));
    while (!host.path.empty() && host.path.back().column >= column) host.path.pop_back();
    if (host.path.size() > kMaxDeep) return Fault("nested deeper than 64 levels");
    if (kind == "NVL") host.has_nvlink = has_nvlink_ = true;
    AddPlace(kind, node, speed, host);
    if (static_cast<int64_t>(host.around_gpu.size() + host.around_net.size()) > kMaxBoxDevices)
      return Fault(fmt::format("more than {} GPUs and NICs", kMaxBoxDevices));
    if (kind.empty() || kind == "PCI") host.path.push_back({column, std::string(node)});
    return {};
  }

  // "GPU/0-3b000", in older versions "GPU/3B000".
  void AddPlace(std::string_view kind, std::string_view node, double speed, Host& host) const {
    const size_t slash = node.find('/');
    if (slash == node.npos) return;
    const std::string_view type = node.substr(0, slash);
    const size_t dash = node.find('-', slash);
    const std::string_view id = node.substr(dash == node.npos ? slash + 1 : dash + 1);
    std::vector<std::string> around;
    for (const Node& one : host.path)
      if (!one.name.starts_with("NIC/")) around.push_back(one.name);
    if (kind == "PCI" && type == "GPU") {
      if (const auto address = Hexadecimal(id)) host.around_gpu[*address] = around;
    } else if (kind == "NET" && type == "NET") {
      const auto number = Hexadecimal(id);
      if (!number) return;
      host.around_net[*number] = around;
      const auto nic = host.nics.find(*number);
      if (nic != host.nics.end() && speed > 0 && speed < 1e5)
        nic->second.bandwidth = std::llround(speed * 1e9);
    }
  }

  static PathClass ClassOf(const std::vector<std::string>& a, const std::vector<std::string>& b) {
    size_t common = 0;
    while (common < a.size() && common < b.size() && a[common] == b[common]) ++common;
    if (common == 0) return PathClass::kSys;
    if (common == 1) return PathClass::kPhb;
    return a.size() + b.size() - 2 * common == 0 ? PathClass::kPix : PathClass::kPxb;
  }

  Result<BoxFacts> MakeBox(const std::string& name, const Host& host) const {
    BoxFacts box;
    box.host = name;
    box.place = {source_, host.line};
    std::vector<std::pair<int64_t, int64_t>> gpus;  // number, address
    for (const auto& [address, gpu] : host.gpus) gpus.emplace_back(gpu.order, address);
    std::sort(gpus.begin(), gpus.end());
    std::vector<const std::vector<std::string>*> around;
    const auto note = [&around](const auto& known, int64_t key) {
      const auto found = known.find(key);
      around.push_back(found == known.end() ? nullptr : &found->second);
    };
    for (const auto& [order, address] : gpus) {
      box.gpus.push_back(
          {.id = AddressOf(address), .place = {source_, host.gpus.at(address).line}});
      note(host.around_gpu, address);
    }
    std::set<std::string> names;
    for (const auto& [number, nic] : host.nics) {
      if (!names.insert(nic.name).second)
        return FaultIn(source_, nic.place.line,
                       fmt::format("two NICs of {} have the name '{}'", name, nic.name));
      box.nics.push_back(nic);
      note(host.around_net, number);
    }
    if (static_cast<int64_t>(box.num_devices()) > kMaxBoxDevices)
      return FaultIn(source_, 0, fmt::format("more than {} GPUs and NICs", kMaxBoxDevices));
    // What NVLinks join is not told by PCIe: without their numbers rather nothing is said.
    if (host.has_nvlink || has_nvlink_ ||
        std::find(around.begin(), around.end(), nullptr) != around.end())
      return box;
    for (size_t a = 0; a < around.size(); ++a)
      for (size_t b = 0; b < around.size(); ++b)
        box.classes.push_back(a == b ? PathClass::kSelf : ClassOf(*around[a], *around[b]));
    return box;
  }

  Lines lines_;
  const std::string& source_;
  std::map<std::string, Host> hosts_;
  std::vector<std::string> order_;
  std::vector<RankFact> ranks_;
  std::set<std::tuple<std::string, int64_t, int64_t>> seen_;  // of them
  bool has_nvlink_ = false;
};

}  // namespace

bool LooksLikeNcclLog(std::string_view text) { return text.find(kMark) != text.npos; }

Result<Facts> ReadNcclLog(std::string_view text, const std::string& source) {
  return NcclLogReader(text, source).Read();
}

}  // namespace tutti::import
