#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <pugixml.hpp>

#include "machine.h"
#include "msccl_file.h"

namespace tutti::lower {
namespace {

class MscclFileReader {
 public:
  MscclFileReader(const MscclReader& reader, std::vector<PlanFault>& faults)
      : reader_(reader), faults_(faults) {}

  MscclFile Read(const pugi::xml_document& document) {
    MscclFile file;
    const pugi::xml_node algo = document.child("algo");
    if (!algo) {
      Fault("file", "has no <algo> element");
      return file;
    }
    if (reader_.reads_outofplace && document.first_child() != algo)
      Fault("file", fmt::format("{} wants <algo> to be the first thing in it", reader_.name));
    ReadAlgo(algo, file);
    return file;
  }

 private:
  void Fault(const std::string& where, const std::string& what) {
    if (faults_.size() < kMaxFaults) faults_.push_back({where + ": " + what});
  }

  int64_t Int(const pugi::xml_node& node, const char* name, const std::string& where,
              std::optional<int64_t> fallback = std::nullopt) {
    const pugi::xml_attribute attribute = node.attribute(name);
    if (!attribute) {
      if (!fallback) Fault(where, fmt::format("attribute {} is missing", name));
      return fallback.value_or(0);
    }
    const char* text = attribute.value();
    const char* end = text + std::strlen(text);
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(text, end, value);
    if (error != std::errc() || stop != end) {
      Fault(where, fmt::format("{}=\"{}\" is not an integer", name, text));
      return 0;
    }
    return value;
  }

  int64_t IntIn(const pugi::xml_node& node, const char* name, const std::string& where, int64_t low,
                int64_t high, std::optional<int64_t> fallback = std::nullopt) {
    const size_t before = faults_.size();
    const int64_t value = Int(node, name, where, fallback);
    if (faults_.size() != before || (low <= value && value <= high)) return value;
    Fault(where, fmt::format("{}=\"{}\" is outside [{}, {}]", name, value, low, high));
    return low;
  }

  std::string Text(const pugi::xml_node& node, const char* name, const std::string& where) {
    const pugi::xml_attribute attribute = node.attribute(name);
    if (!attribute) Fault(where, fmt::format("attribute {} is missing", name));
    return attribute.value();
  }

  void ReadAlgo(const pugi::xml_node& algo, MscclFile& file) {
    const std::string where = "algo";
    const auto required = [this](int64_t fallback) {
      return reader_.reads_outofplace ? std::nullopt : std::optional<int64_t>(fallback);
    };
    if (!reader_.reads_outofplace) file.name = Text(algo, "name", where);
    file.proto = Text(algo, "proto", where);
    if (file.proto != "Simple" && file.proto != "LL" && file.proto != "LL128")
      Fault(where, fmt::format("proto=\"{}\" is none of Simple, LL, LL128", file.proto));
    file.coll = Text(algo, "coll", where);
    file.nchannels = IntIn(algo, "nchannels", where, 1, reader_.max_channels);
    file.nchunksperloop = IntIn(algo, "nchunksperloop", where, 1, kMscclMaxOffset + 1);
    file.in_place = IntIn(algo, "inplace", where, 0, 1) != 0;
    file.out_of_place =
        IntIn(algo, "outofplace", where, 0, 1, required(file.in_place ? 0 : 1)) != 0;
    // This reader does not look at outofplace.
    if (!reader_.reads_outofplace) file.out_of_place = !file.in_place;
    if (!file.in_place && !file.out_of_place)
      Fault(where, "inplace and outofplace are both 0, so it is never used");
    constexpr int64_t kLargest = INT64_MAX;
    file.min_bytes = IntIn(algo, "minBytes", where, 0, kLargest, required(0));
    file.max_bytes = IntIn(algo, "maxBytes", where, 0, kLargest, required(int64_t{1} << 27));
    const bool unlimited = reader_.reads_outofplace && file.max_bytes == 0;
    if (!unlimited && file.max_bytes < file.min_bytes)
      Fault(where, fmt::format("maxBytes {} is below minBytes {}", file.max_bytes, file.min_bytes));
    ReadGpus(algo, IntIn(algo, "ngpus", where, 1, kMscclMaxChildren), file);
  }

  void ReadGpus(const pugi::xml_node& algo, int64_t ngpus, MscclFile& file) {
    file.gpus.resize(static_cast<size_t>(ngpus));
    std::vector<char> seen(file.gpus.size(), 0);
    for (const pugi::xml_node& node : algo.children("gpu")) {
      const int64_t id = Int(node, "id", "gpu");
      const std::string where = fmt::format("gpu {}", id);
      if (id < 0 || id >= ngpus) {
        Fault(where, fmt::format("ids are 0 to {}", ngpus - 1));
        continue;
      }
      if (seen[static_cast<size_t>(id)]++ != 0) Fault(where, "is there twice");
      ReadGpu(node, where, ngpus, file.nchannels, file.gpus[static_cast<size_t>(id)]);
    }
    for (size_t g = 0; g < seen.size(); ++g)
      if (seen[g] == 0) Fault(fmt::format("gpu {}", g), "is missing");
  }

  void ReadGpu(const pugi::xml_node& node, const std::string& where, int64_t ngpus,
               int64_t nchannels, MscclGpu& gpu) {
    gpu = {};
    const std::array<const char*, 3> names{"i_chunks", "o_chunks", "s_chunks"};
    for (size_t b = 0; b < 3; ++b)
      gpu.chunks[b] = IntIn(node, names[b], where, 0, kMscclMaxOffset + 1);
    const auto children = node.children("tb");
    const auto count = static_cast<int64_t>(std::distance(children.begin(), children.end()));
    if (count > reader_.max_tbs) {
      Fault(where, fmt::format("{} takes at most {} thread blocks, got {}", reader_.name,
                               reader_.max_tbs, count));
      return;
    }
    gpu.tbs.resize(static_cast<size_t>(count));
    std::vector<char> seen(gpu.tbs.size(), 0);
    for (const pugi::xml_node& child : children) {
      const int64_t id = Int(child, "id", where + " tb");
      const std::string inner = fmt::format("{} tb {}", where, id);
      if (id < 0 || id >= count || seen[static_cast<size_t>(id)]++ != 0) {
        Fault(inner, fmt::format("ids must be 0 to {}, each once", count - 1));
        continue;
      }
      MscclThreadBlock& tb = gpu.tbs[static_cast<size_t>(id)];
      tb.send = IntIn(child, "send", inner, -1, ngpus - 1);
      tb.recv = IntIn(child, "recv", inner, -1, ngpus - 1);
      tb.chan = IntIn(child, "chan", inner, 0, nchannels - 1);
      const auto steps = child.children("step");
      const auto length = static_cast<int64_t>(std::distance(steps.begin(), steps.end()));
      if (length > reader_.max_steps) {
        Fault(inner, fmt::format("{} takes at most {} steps a thread block, got {}", reader_.name,
                                 reader_.max_steps, length));
        continue;
      }
      for (const pugi::xml_node& step : steps)
        tb.steps.push_back(
            ReadStep(step, fmt::format("{} step {}", inner, tb.steps.size()), tb.steps.size()));
    }
  }

  MscclStep ReadStep(const pugi::xml_node& node, const std::string& where, size_t number) {
    MscclStep step;
    const int64_t s = Int(node, "s", where);
    if (s != static_cast<int64_t>(number))
      Fault(where, fmt::format("s=\"{}\", steps must be numbered 0, 1, ... in order", s));
    const std::string type = Text(node, "type", where);
    const auto op = std::find_if(kMscclOps.begin(), kMscclOps.end(),
                                 [&](const MscclOp& known) { return known.name == type; });
    if (op == kMscclOps.end())
      Fault(where,
            fmt::format("type \"{}\" is none of s, r, rcs, rrs, rrc, rrcs, cpy, re, nop", type));
    else
      step.op = static_cast<size_t>(op - kMscclOps.begin());
    step.src = ReadOperand(node, "srcbuf", "srcoff", where);
    step.dst = ReadOperand(node, "dstbuf", "dstoff", where);
    const bool moves = step.op != kMscclNop;
    step.cnt = IntIn(node, "cnt", where, moves ? 1 : 0, kMscclMaxCount);
    step.depid = IntIn(node, "depid", where, -1, reader_.max_depid);
    step.deps = IntIn(node, "deps", where, -1, reader_.max_steps - 1);
    step.hasdep = IntIn(node, "hasdep", where, 0, 1) != 0;
    if ((step.depid < 0) != (step.deps < 0))
      Fault(where, fmt::format("depid {} and deps {} must be both given or both -1", step.depid,
                               step.deps));
    return step;
  }

  Operand ReadOperand(const pugi::xml_node& node, const char* buffer, const char* offset,
                      const std::string& where) {
    Operand operand;
    const std::string name = Text(node, buffer, where);
    if (name == "o")
      operand.buffer = Buffer::kOutput;
    else if (name == "s")
      operand.buffer = Buffer::kScratch;
    else if (name != "i")
      Fault(where, fmt::format("{}=\"{}\" is none of i, o, s", buffer, name));
    operand.offset = IntIn(node, offset, where, -1, kMscclMaxOffset);
    return operand;
  }

  const MscclReader& reader_;
  std::vector<PlanFault>& faults_;
};

}  // namespace

Result<MscclFile> ReadMsccl(std::string_view xml, const MscclReader& reader,
                            std::vector<PlanFault>& faults) {
  if (const size_t at = xml.find("<!DOCTYPE"); at != xml.npos)
    return MakeError(ErrorCode::kCorrupt,
                     fmt::format("a document type at byte {}, which this format has not", at));
  pugi::xml_document document;
  const pugi::xml_parse_result parsed = document.load_buffer(
      xml.data(), xml.size(), pugi::parse_default | pugi::parse_declaration, pugi::encoding_utf8);
  if (!parsed)
    return MakeError(ErrorCode::kCorrupt,
                     fmt::format("not XML at byte {}: {}", parsed.offset, parsed.description()));
  return MscclFileReader(reader, faults).Read(document);
}

}  // namespace tutti::lower
