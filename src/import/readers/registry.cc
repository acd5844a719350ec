#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <system_error>

#include "reader.h"
#include "tutti/base/file.h"
#include "tutti/import/import.h"

namespace tutti {
namespace import {
namespace {

// One line a format, in the order in which they are asked whether a text is theirs.
constexpr std::array<FileReader, 9> kReaders{{
    {"nccl-xml", "NCCL topology XML (NCCL_TOPO_DUMP_FILE): a host's GPUs, NVLinks, PCIe and NICs",
     LooksLikeNcclXml, ReadNcclXml},
    {"hwloc-xml",
     "hwloc's XML (`lstopo --whole-io --of xml`): a host's PCIe, GPUs, NICs and NVLinks",
     LooksLikeHwlocXml, ReadHwlocXml},
    {"nccl-log", "log of NCCL_DEBUG=INFO: the hosts of a job, their GPUs and NICs",
     LooksLikeNcclLog, ReadNcclLog},
    {"topograph", "graph JSON of topograph: the switches above each instance", LooksLikeTopograph,
     ReadTopograph},
    {"lldp", "output of `lldpctl -f json`: the switches at a host's interfaces", LooksLikeLldp,
     ReadLldp},
    {"ibnetdiscover", "output of ibnetdiscover: an InfiniBand fabric, cable by cable",
     LooksLikeIbnetdiscover, ReadIbnetdiscover},
    {"nvidia-smi", "matrix of `nvidia-smi topo -m`: NVLinks and nearness of a host's GPUs and NICs",
     LooksLikeNvidiaSmi, ReadNvidiaSmi},
    {"slurm-yaml", "Slurm's topology.yaml: switches or blocks with their nodes", LooksLikeSlurmYaml,
     ReadSlurmYaml},
    {"slurm-conf", "Slurm's topology.conf: switches or blocks with their nodes", LooksLikeSlurmConf,
     ReadSlurmConf},
}};

}  // namespace

std::span<const FileReader> Readers() { return kReaders; }

tl::unexpected<Error> FaultIn(const std::string& source, int64_t line, const std::string& message) {
  return MakeError(ErrorCode::kCorrupt,
                   fmt::format("{}: {}", FactPlace{source, line}.Text(), message));
}

std::string Printable(std::string_view text) {
  std::string shown;
  for (char c : text) shown += c >= 0x20 && c < 0x7f ? c : '?';
  return shown;
}

std::string Shown(std::string_view text) {
  constexpr size_t kMost = 60;
  const std::string shown = Printable(text.substr(0, kMost));
  return text.size() > kMost ? shown + "..." : shown;
}

bool IsNodeName(std::string_view name) {
  constexpr size_t kMost = 200;
  if (name.empty() || name.size() > kMost) return false;
  for (char c : name)
    if (c <= 0x20 || c >= 0x7f || c == '"' || c == '\\') return false;
  return true;
}

}  // namespace import

std::string FactPlace::Text() const {
  const std::string whole = import::Printable(source);
  return line > 0 ? fmt::format("{}:{}", whole, line) : whole;
}

std::string_view Name(PathClass path) {
  constexpr std::array<std::string_view, 6> kNames{"X", "PIX", "PXB", "PHB", "NODE", "SYS"};
  return kNames[static_cast<size_t>(path)];
}

std::vector<ImportFormat> ImportFormats() {
  std::vector<ImportFormat> formats;
  for (const import::FileReader& reader : import::Readers())
    formats.push_back({reader.name, reader.summary});
  return formats;
}

Result<Facts> ParseFacts(std::string_view text, const std::string& source) {
  if (static_cast<int64_t>(text.size()) > kMaxImportBytes)
    return import::FaultIn(source, 0, fmt::format("more than {} bytes", kMaxImportBytes));
  for (const import::FileReader& reader : import::Readers())
    if (reader.recognises(text)) return reader.read(text, source);
  std::string known;
  for (const import::FileReader& reader : import::Readers())
    known += fmt::format("{}{}", known.empty() ? "" : ", ", reader.name);
  return import::FaultIn(source, 0,
                         fmt::format("nothing in it is of a format that is known: {}", known));
}

Result<Facts> ReadFacts(const std::string& path) {
  std::error_code fault;
  const auto size = std::filesystem::file_size(path, fault);
  if (!fault && size > static_cast<uintmax_t>(kMaxImportBytes))
    return import::FaultIn(path, 0,
                           fmt::format("{} bytes, at most {} are read", size, kMaxImportBytes));
  const Result<std::string> text = ReadFile(path);
  if (!text) return tl::unexpected(text.error());
  return ParseFacts(*text, path);
}

}  // namespace tutti
