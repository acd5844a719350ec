// The matrix of `nvidia-smi topo -m`: classes between GPUs and NICs of one host, without its name.
#include <fmt/format.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "reader.h"
#include "text.h"

namespace tutti::import {
namespace {

// What a cell says: a class, or so many NVLinks.
struct Cell {
  PathClass path = PathClass::kSelf;
  int32_t nvlinks = 0;
  friend bool operator==(const Cell&, const Cell&) = default;
};

std::optional<Cell> ParseCell(std::string_view text) {
  if (text == "X") return Cell{};
  if (text == "PIX") return Cell{PathClass::kPix};
  if (text == "PXB") return Cell{PathClass::kPxb};
  if (text == "PHB") return Cell{PathClass::kPhb};
  if (text == "NODE") return Cell{PathClass::kNode};
  if (text == "SYS" || text == "SOC") return Cell{PathClass::kSys};
  if (!text.starts_with("NV")) return std::nullopt;
  const auto links = Number(text.substr(2), 1000);
  if (!links || *links == 0) return std::nullopt;
  return Cell{PathClass::kSys, static_cast<int32_t>(*links)};
}

bool IsGpu(std::string_view name) {
  return name.starts_with("GPU") && Number(name.substr(3), kMaxBoxDevices).has_value();
}

// The devices that a header line names: from GPU0 on up to "CPU Affinity".
std::vector<std::string> HeaderOf(std::string_view line) {
  std::vector<std::string> devices;
  for (std::string_view word : Words(line)) {
    if (word == "CPU" || word == "NUMA") break;
    if (devices.empty() && !IsGpu(word)) return {};
    devices.emplace_back(word);
  }
  // A row of the matrix begins with a GPU, too.
  if (devices.size() >= 2 && ParseCell(devices[1])) return {};
  return devices;
}

class Matrix {
 public:
  Matrix(std::string_view text, const std::string& source) : lines_(text), source_(source) {}

  Result<Facts> Read() {
    std::string_view raw;
    while (lines_.Next(raw)) {
      const std::string line = WithoutEscapes(raw);
      const Status status = header_line_ == 0 ? ReadHeader(line) : ReadLine(line);
      if (!status) return tl::unexpected(status.error());
    }
    if (rows_.size() != names_.size())
      return FaultIn(
          source_, lines_.number(),
          fmt::format("the matrix ends after {} of {} rows", rows_.size(), names_.size()));
    return Finish();
  }

 private:
  Status ReadHeader(const std::string& line) {
    names_ = HeaderOf(line);
    if (names_.empty()) return {};
    header_line_ = lines_.number();
    if (static_cast<int64_t>(names_.size()) > kMaxBoxDevices)
      return FaultIn(source_, header_line_, fmt::format("more than {} devices", kMaxBoxDevices));
    for (size_t i = 0; i < names_.size(); ++i) {
      if (!IsNodeName(names_[i]))
        return FaultIn(source_, header_line_, "a device without a printable name");
      if (!index_.emplace(names_[i], i).second)
        return FaultIn(source_, header_line_,
                       fmt::format("'{}' heads two columns", Shown(names_[i])));
      if (!IsGpu(names_[i])) continue;
      if (i != num_gpus_)
        return FaultIn(source_, header_line_, "a GPU behind a NIC; GPUs come first");
      ++num_gpus_;
    }
    return {};
  }

  // A row of the matrix, a line of the NIC legend, or text of no concern.
  Status ReadLine(const std::string& line) {
    const std::vector<std::string_view> words = Words(line);
    if (words.empty()) return {};
    if (words.size() == 2 && words[0].back() == ':') {
      const auto found = index_.find(std::string(words[0].substr(0, words[0].size() - 1)));
      if (found != index_.end() && found->second >= num_gpus_ && IsNodeName(words[1]))
        legend_[found->second] = words[1];
      return {};
    }
    if (rows_.size() == names_.size() || words[0] == "Legend:") return {};
    if (words[0] != names_[rows_.size()])
      return FaultIn(
          source_, lines_.number(),
          fmt::format("found '{}', wanted the row of {}", Shown(words[0]), names_[rows_.size()]));
    if (words.size() < names_.size() + 1)
      return FaultIn(source_, lines_.number(),
                     fmt::format("{} has {} cells, wanted {}", names_[rows_.size()],
                                 words.size() - 1, names_.size()));
    return ReadRow(words);
  }

  Status ReadRow(const std::vector<std::string_view>& words) {
    const size_t row = rows_.size();
    std::vector<Cell> cells;
    for (size_t column = 0; column < names_.size(); ++column) {
      const auto fault = [&](const std::string& what) {
        return FaultIn(source_, lines_.number(),
                       fmt::format("{} and {}: {}", names_[row], names_[column], what));
      };
      const std::optional<Cell> cell = ParseCell(words[column + 1]);
      if (!cell)
        return fault(fmt::format("found '{}', wanted X, NV<n>, PIX, PXB, PHB, NODE or SYS",
                                 Shown(words[column + 1])));
      if ((row == column) != (*cell == Cell{}))
        return fault("X stands on the diagonal and nowhere else");
      if (column < row && *cell != rows_[column][row])
        return fault(fmt::format("found '{}', but line {} says otherwise of the two",
                                 words[column + 1], row_lines_[column]));
      if (cell->nvlinks > 0 && (row >= num_gpus_ || column >= num_gpus_))
        return fault("NVLinks to a NIC");
      cells.push_back(*cell);
    }
    rows_.push_back(std::move(cells));
    row_lines_.push_back(lines_.number());
    return {};
  }

  Result<Facts> Finish() const {
    Facts facts{.source = source_, .format = "nvidia-smi"};
    BoxFacts box;
    box.place = box.all_nvlinks = {source_, header_line_};
    for (size_t i = 0; i < names_.size(); ++i) {
      const FactPlace place{source_, row_lines_[i]};
      const auto called = legend_.find(i);
      if (i < num_gpus_)
        box.gpus.push_back({.id = names_[i], .place = place});
      else
        box.nics.push_back(
            {.name = called == legend_.end() ? names_[i] : called->second, .place = place});
      for (size_t j = 0; j < names_.size(); ++j) {
        box.classes.push_back(rows_[i][j].path);
        if (i < j && rows_[i][j].nvlinks > 0)
          box.nvlinks.push_back({.gpu = static_cast<int32_t>(i),
                                 .peer = static_cast<int32_t>(j),
                                 .links = rows_[i][j].nvlinks,
                                 .place = place});
      }
    }
    facts.boxes.push_back(std::move(box));
    return facts;
  }

  Lines lines_;
  const std::string& source_;
  int64_t header_line_ = 0;
  size_t num_gpus_ = 0;
  std::vector<std::string> names_;
  std::map<std::string, size_t> index_;
  std::map<size_t, std::string> legend_;
  std::vector<std::vector<Cell>> rows_;
  std::vector<int64_t> row_lines_;
};

}  // namespace

bool LooksLikeNvidiaSmi(std::string_view text) {
  Lines lines(text.substr(0, 1 << 16));
  for (std::string_view line; lines.Next(line);)
    if (!HeaderOf(WithoutEscapes(line)).empty()) return true;
  return false;
}

Result<Facts> ReadNvidiaSmi(std::string_view text, const std::string& source) {
  return Matrix(text, source).Read();
}

}  // namespace tutti::import
