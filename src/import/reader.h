// A reader: one file of `readers/` and one line of `readers/registry.cc`.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "tutti/base/result.h"
#include "tutti/import/facts.h"

namespace tutti::import {

struct FileReader {
  std::string_view name;
  std::string_view summary;
  // Whether a text looks like the format; looks at the whole text at most once.
  bool (*recognises)(std::string_view text);
  Result<Facts> (*read)(std::string_view text, const std::string& source);
};

// In the order in which they are asked.
std::span<const FileReader> Readers();

// "source:line: message"; line 0 is left out.
tl::unexpected<Error> FaultIn(const std::string& source, int64_t line, const std::string& message);
// With '?' for each byte that is no printable ASCII: the name of a file in a message.
std::string Printable(std::string_view text);
// Text of a file in a message: printable, short.
std::string Shown(std::string_view text);
// Printable ASCII without blanks, at most 200 characters: fit for a node.
bool IsNodeName(std::string_view name);

// nvidia_smi.cc
bool LooksLikeNvidiaSmi(std::string_view text);
Result<Facts> ReadNvidiaSmi(std::string_view text, const std::string& source);
// nccl_xml.cc
bool LooksLikeNcclXml(std::string_view text);
Result<Facts> ReadNcclXml(std::string_view text, const std::string& source);
// slurm_conf.cc
bool LooksLikeSlurmConf(std::string_view text);
Result<Facts> ReadSlurmConf(std::string_view text, const std::string& source);
// ibnetdiscover.cc
bool LooksLikeIbnetdiscover(std::string_view text);
Result<Facts> ReadIbnetdiscover(std::string_view text, const std::string& source);
// lldp.cc
bool LooksLikeLldp(std::string_view text);
Result<Facts> ReadLldp(std::string_view text, const std::string& source);
// topograph.cc
bool LooksLikeTopograph(std::string_view text);
Result<Facts> ReadTopograph(std::string_view text, const std::string& source);

// slurm_yaml.cc
bool LooksLikeSlurmYaml(std::string_view text);
Result<Facts> ReadSlurmYaml(std::string_view text, const std::string& source);
// hwloc_xml.cc
bool LooksLikeHwlocXml(std::string_view text);
Result<Facts> ReadHwlocXml(std::string_view text, const std::string& source);
// The same of what hwloc shows: without GPUs and NICs it is no box but a note.
Result<Facts> ReadShownByHwloc(std::string_view text, const std::string& source);
// nccl_log.cc
bool LooksLikeNcclLog(std::string_view text);
Result<Facts> ReadNcclLog(std::string_view text, const std::string& source);

}  // namespace tutti::import
