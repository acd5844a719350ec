#include "ras.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <ctime>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace tutti::service {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr int kRasProtocol = 2;
constexpr size_t kMaxLine = 4096;

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

// What a client sent, as it can stand in an answer.
std::string Printable(std::string_view text) {
  std::string printable(text.substr(0, 200));
  for (char& c : printable)
    if (c < ' ' || c > '~') c = '?';
  return printable;
}

std::string LocalTime(int64_t real_ns) {
  const auto seconds = static_cast<time_t>(real_ns / 1'000'000'000);
  std::tm parts{};
  localtime_r(&seconds, &parts);
  std::array<char, 64> text{};
  const size_t size = std::strftime(text.data(), text.size(), "%F %T", &parts);
  return std::string(text.data(), size);
}

std::string DumpLenient(const OrderedJson& json) {
  return json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n";
}

OrderedJson JsonOf(const RasRank& rank) {
  OrderedJson counts = OrderedJson::object();
  for (size_t kind = 0; kind < kNumKinds; ++kind) counts[NcclKindText(kind)] = rank.counts[kind];
  return {{"rank", rank.rank},
          {"host", rank.host},
          {"pid", rank.process},
          {"cuda_dev", rank.device},
          {"nvml_dev", rank.device},
          {"status",
           {{"init_state", rank.is_active ? 0 : 7},
            {"async_error", rank.async_error},
            {"finalize_called", rank.has_left},
            {"destroy_flag", rank.has_left},
            {"abort_flag", rank.async_error != 0}}},
          {"collective_counts", counts},
          {"operations_issued", rank.issued},
          {"operations_completed", rank.completed},
          {"waits_for", rank.waits_for}};
}

OrderedJson JsonOfMissing(const RasRank& rank) {
  return {{"rank", rank.rank},
          {"host", rank.host},
          {"pid", rank.process},
          {"cuda_dev", rank.device},
          {"nvml_dev", rank.device},
          {"status", {{"unresponsive", true}, {"considered_dead", rank.has_left}}},
          {"details", rank.why_missing}};
}

// "2" where all have as many, else "1-2".
std::string RangeText(const std::vector<int64_t>& values) {
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  if (values.empty()) return "0";
  return *least == *most ? fmt::format("{}", *least) : fmt::format("{}-{}", *least, *most);
}

std::vector<int64_t> RanksByHost(const RasCommunicator& communicator) {
  std::map<std::string, int64_t> by_host;
  for (const RasRank& rank : communicator.ranks) ++by_host[rank.host];
  std::vector<int64_t> counts;
  for (const auto& [host, count] : by_host) counts.push_back(count);
  return counts;
}

std::string JobSummary(const RasReport& report) {
  std::map<std::string, std::set<int32_t>> processes;  // by host
  std::set<std::pair<std::string, int32_t>> devices;
  for (const RasCommunicator& communicator : report.communicators)
    for (const RasRank& rank : communicator.ranks) {
      processes[rank.host].insert(rank.process);
      devices.insert({rank.host, rank.device});
    }
  std::vector<int64_t> of_host;
  size_t total = 0;
  for (const auto& [host, of] : processes) {
    of_host.push_back(static_cast<int64_t>(of.size()));
    total += of.size();
  }
  return fmt::format(
      "Job summary\n===========\n\n  Nodes  Processes  Processes  Devices\n(total)   per node    "
      "(total)  (total)\n{:>7}  {:>9}  {:>9}  {:>7}\n\n",
      processes.size(), RangeText(of_host), total, devices.size());
}

}  // namespace

std::string RasText(const RasReport& report, bool verbose) {
  std::string text = fmt::format("Tutti version {} at {}, {}\n\n", report.version, report.host,
                                 LocalTime(report.real_ns));
  text += JobSummary(report);
  text += fmt::format("Communicators... ({:.2f}s)\n=============\n\n", report.collection_s);
  std::string errors, details;
  if (report.communicators.empty()) text += "none\n";
  if (!report.communicators.empty())
    text += fmt::format("{:>12} {:>7} {:>9} {:>7} {:>8} {:>10} {:>11}\n", "Communicator", "Nodes",
                        "Ranks", "Ranks", "Missing", "Status", "Errors");
  for (const RasCommunicator& of : report.communicators) {
    const std::vector<int64_t> by_host = RanksByHost(of);
    const bool is_behind = !of.missing.empty();
    text += fmt::format("{:>12} {:>7} {:>9} {:>7} {:>8} {:>10} {:>11}\n", of.label, by_host.size(),
                        RangeText(by_host), of.size, of.missing.size(),
                        of.error.empty() ? (of.state == "joining" ? "INIT" : "RUNNING") : "ERROR",
                        !of.error.empty() ? "ERROR"
                        : is_behind       ? "INCOMPLETE"
                                          : "OK");
    if (!of.error.empty()) errors += fmt::format("{}: {}\n", of.label, of.error);
    for (const RasRank& rank : of.missing)
      errors += fmt::format("{}: rank {}{} {}\n", of.label, rank.rank,
                            rank.host.empty() ? "" : " (" + rank.host + ")", rank.why_missing);
    for (const RasRank& rank : of.ranks)
      if (verbose || !rank.waits_for.empty())
        details +=
            fmt::format("{}: rank {} ({}, process {}, device {}): {} of {} operations{}{}\n",
                        of.label, rank.rank, rank.host, rank.process, rank.device, rank.completed,
                        rank.issued, rank.waits_for.empty() ? "" : ", in ", rank.waits_for);
  }
  text += "\nErrors\n======\n\n" + (errors.empty() ? std::string("none\n") : errors);
  if (!details.empty()) text += "\nRanks\n=====\n\n" + details;
  return text;
}

std::string RasJson(const RasReport& report) {
  OrderedJson all = OrderedJson::array();
  for (const RasCommunicator& of : report.communicators) {
    OrderedJson ranks = OrderedJson::array(), missing = OrderedJson::array();
    for (const RasRank& rank : of.ranks) ranks.push_back(JsonOf(rank));
    for (const RasRank& rank : of.missing) missing.push_back(JsonOfMissing(rank));
    all.push_back(
        {{"hash", fmt::format("{:#x}", of.hash)},
         {"secondary_hash", fmt::format("{:#x}:{:#x}", of.hash >> 32, of.hash & 0xffffffffu)},
         {"size", of.size},
         {"ranks_count", of.ranks.size()},
         {"missing_ranks_count", of.missing.size()},
         {"communicator", of.label},
         {"tenant", of.tenant},
         {"state", of.state},
         {"error", of.error},
         {"ranks", ranks},
         {"missing_ranks", missing}});
  }
  constexpr int kNone = -1;  // as NCCL says where it knows none
  return DumpLenient(
      {{"nccl_version", "tutti " + report.version},
       {"cuda_runtime_version", kNone},
       {"cuda_driver_version", kNone},
       {"timestamp", LocalTime(report.real_ns)},
       {"communicators_count", report.communicators.size()},
       {"communicators", all},
       {"ras", {{"collection_time_sec", report.collection_s}, {"timeouts_count", 0}}}});
}

std::string RasEventText(const RasEvent& event, bool json) {
  const std::string time = LocalTime(event.real_ns);
  const char* group = event.group == RasGroup::kLifecycle ? "LIFECYCLE" : "TRACE";
  if (json) {
    OrderedJson said = {{"timestamp", time}, {"group", group}, {"event", event.event}};
    if (event.process >= 0)
      said["peer"] = {{"host", event.host},
                      {"pid", event.process},
                      {"cuda_devs", OrderedJson::array()},
                      {"nvml_devs", OrderedJson::array()}};
    said["details"] = event.details;
    return DumpLenient(said);
  }
  return fmt::format(
      "[{}] {} {}{}: {}\n", time, group, event.event,
      event.process < 0 ? "" : fmt::format(" {} process {}", event.host, event.process),
      event.details);
}

bool RasProtocol::Take(std::string_view line, std::string& out) {
  const std::string said = Lower(line);
  const auto behind = [&said](std::string_view word) -> std::string_view {
    if (said.size() <= word.size() || said.compare(0, word.size(), word) != 0) return {};
    return std::string_view(said).substr(word.size());
  };
  if (!behind("client protocol ").empty()) {
    out += fmt::format("SERVER PROTOCOL {}\n", kRasProtocol);
    return true;
  }
  if (const std::string_view seconds = behind("timeout "); !seconds.empty()) {
    double value = -1;
    const auto [end, error] =
        std::from_chars(seconds.data(), seconds.data() + seconds.size(), value);
    const bool is_number = error == std::errc() && end == seconds.data() + seconds.size();
    // Not less than 0, nor endless, nor no number.
    constexpr double kMost = 1e9;
    out += is_number && value >= 0 && value <= kMost
               ? "OK\n"
               : fmt::format("ERROR: Invalid timeout value {}\n", Printable(seconds));
    return true;
  }
  if (const std::string_view format = behind("set format "); !format.empty()) {
    const bool is_known = format == "json" || format == "text";
    if (is_known) json_ = format == "json";
    out += is_known ? "OK\n" : fmt::format("ERROR: Invalid format {}\n", Printable(format));
    return true;
  }
  if (said == "status" || said == "verbose status") {
    out += json_ ? RasJson(report_()) : RasText(report_(), said != "status");
    return false;
  }
  if (said == "monitor" || !behind("monitor ").empty()) {
    uint8_t wanted = 0;
    std::string_view rest = behind("monitor ");
    while (!rest.empty()) {
      std::string_view word = rest.substr(0, rest.find(','));
      rest.remove_prefix(std::min(rest.size(), word.size() + 1));
      word.remove_prefix(std::min(word.size(), word.find_first_not_of(' ')));
      const uint8_t lifecycle = static_cast<uint8_t>(RasGroup::kLifecycle);
      const uint8_t trace = static_cast<uint8_t>(RasGroup::kTrace);
      const uint8_t group = word == "lifecycle" ? lifecycle
                            : word == "trace"   ? trace
                            : word == "all"     ? static_cast<uint8_t>(lifecycle | trace)
                                                : uint8_t{0};
      if (group == 0) {
        out += fmt::format("ERROR: Invalid event group '{}'\n", Printable(word));
        return true;
      }
      wanted = static_cast<uint8_t>(wanted | group);
    }
    groups_ = wanted != 0 ? wanted : static_cast<uint8_t>(RasGroup::kLifecycle);
    out += "OK\n";
    return true;
  }
  out += fmt::format("ERROR: Unknown command {}\n", Printable(line));
  return true;
}

bool RasProtocol::Hear(std::string& in, std::string& out) {
  while (true) {
    const size_t end = in.find('\n');
    if (end == std::string::npos) {
      if (in.size() <= kMaxLine) return true;
      out += fmt::format("ERROR: a line of more than {} bytes\n", kMaxLine);
      in.clear();
      return false;
    }
    std::string line = in.substr(0, end);
    in.erase(0, end + 1);
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!Take(line, out)) return false;
  }
}

void RasProtocol::Tell(const RasEvent& event, std::string& out) const {
  if ((groups_ & static_cast<uint8_t>(event.group)) == 0 || !sees_(event.tenant)) return;
  out += RasEventText(event, json_);
}

}  // namespace tutti::service
