#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <optional>
#include <utility>

#include "built_in_workloads.h"
#include "tutti/base/file.h"
#include "tutti/base/nearest.h"
#include "tutti/training/training_workload.h"

namespace tutti {
namespace {

constexpr std::string_view kFormat = "tutti-workload";
constexpr std::string_view kVersion = "1";
constexpr size_t kMaxLayers = 100'000;
constexpr int64_t kMaxNumber = 10'000'000'000'000'000;  // of one field
constexpr int64_t kMaxSum = int64_t{1} << 62;           // of a column

// A column of whole numbers.
struct Column {
  std::string_view name;
  int64_t WorkloadLayer::*field;
  int64_t least;
  bool required;
};
constexpr std::array<Column, 7> kColumns{{
    {"passes", &WorkloadLayer::passes, 1, false},
    {"forward_flops", &WorkloadLayer::forward_flops, 0, true},
    {"backward_flops", &WorkloadLayer::backward_flops, 0, true},
    {"parameters", &WorkloadLayer::parameters, 0, true},
    {"activations", &WorkloadLayer::activations, 0, true},
    {"forward_all_reduce", &WorkloadLayer::forward_all_reduce, 0, false},
    {"backward_all_reduce", &WorkloadLayer::backward_all_reduce, 0, false},
}};
constexpr std::string_view kLayer = "layer", kTensor = "tensor";
constexpr std::string_view kSplit = "split", kWhole = "whole";

// A key of the head whose value is a whole number; "tensor" is also a column.
struct NumberKey {
  std::string_view name;
  int64_t TrainingWorkload::*field;
  int64_t most;
};
constexpr std::array<NumberKey, 3> kNumberKeys{{
    {"batch", &TrainingWorkload::batch, 1'000'000},
    {kTensor, &TrainingWorkload::tensor, 1'000'000},
    {"bytes_per_number", &TrainingWorkload::bytes_per_number, 16},
}};
struct TextKey {
  std::string_view name;
  std::string TrainingWorkload::*field;
};
constexpr std::array<TextKey, 3> kTextKeys{{
    {"name", &TrainingWorkload::name},
    {"source", &TrainingWorkload::source},
    {"sample", &TrainingWorkload::sample},
}};

std::string Found(std::string_view text) {
  constexpr size_t kMaxShown = 40;
  if (text.empty()) return "nothing";
  return fmt::format("'{}'{}", text.substr(0, kMaxShown), text.size() > kMaxShown ? "..." : "");
}

std::vector<std::string_view> Fields(std::string_view line) {
  std::vector<std::string_view> fields;
  for (size_t begin = 0;;) {
    const size_t comma = std::min(line.find(',', begin), line.size());
    fields.push_back(line.substr(begin, comma - begin));
    if (comma == line.size()) return fields;
    begin = comma + 1;
  }
}

class Parser {
 public:
  explicit Parser(std::string_view text) : rest_(text) {}

  Result<TrainingWorkload> Parse() {
    if (Status status = ReadHead(); !status) return tl::unexpected(status.error());
    while (NextLine()) {
      if (!fault_.empty()) return Fault(fault_);
      if (Status status = ReadLayer(); !status) return tl::unexpected(status.error());
    }
    if (!fault_.empty()) return Fault(fault_);
    if (workload_.layers.empty())
      return InvalidArgument("no layer follows the line of columns; at least one is wanted");
    return std::move(workload_);
  }

 private:
  tl::unexpected<Error> Fault(const std::string& message) const {
    return InvalidArgument(fmt::format("line {}: {}", number_, message));
  }

  // The next line that says something, in line_.
  bool NextLine() {
    while (!rest_.empty()) {
      const size_t end = std::min(rest_.find('\n'), rest_.size());
      line_ = rest_.substr(0, end);
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number_;
      if (!line_.empty() && line_.back() == '\r') line_.remove_suffix(1);
      for (size_t i = 0; i < line_.size(); ++i)
        if (line_[i] < 0x20 || line_[i] > 0x7e) {
          fault_ =
              fmt::format("character {} is byte {:#04x}; accepted are printable ASCII characters",
                          i + 1, static_cast<unsigned char>(line_[i]));
          return true;
        }
      if (!line_.empty() && line_.front() != '#') return true;
    }
    return false;
  }

  Result<int64_t> Number(std::string_view text, std::string_view what, int64_t least,
                         int64_t most) const {
    int64_t value = 0;
    const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (fault != std::errc() || end != text.data() + text.size() || value < least || value > most)
      return Fault(fmt::format("{}: found {}, wanted a whole number within {} .. {}", what,
                               Found(text), least, most));
    return value;
  }

  Status ReadHead() {
    bool first = true;
    std::vector<std::string_view> seen;
    while (NextLine()) {
      if (!fault_.empty()) return Fault(fault_);
      const size_t comma = std::min(line_.find(','), line_.size());
      const std::string_view key = line_.substr(0, comma);
      const std::string_view value = line_.substr(std::min(comma + 1, line_.size()));
      if (std::exchange(first, false)) {
        if (key != kFormat)
          return MakeError(ErrorCode::kCorrupt,
                           fmt::format("line {}: found {}, wanted '{},{}'", number_, Found(line_),
                                       kFormat, kVersion));
        if (value != kVersion)
          return MakeError(ErrorCode::kCorrupt,
                           fmt::format("line {}: version {}, this reader knows version {}", number_,
                                       Found(value), kVersion));
        continue;
      }
      if (key == kLayer) {
        if (workload_.name.empty()) return Fault("no line 'name,...' stands before the layers");
        return ReadColumns();
      }
      if (std::find(seen.begin(), seen.end(), key) != seen.end())
        return Fault(fmt::format("the key {} stands twice", Found(key)));
      if (Status status = ReadKey(key, value); !status) return status;
      seen.push_back(key);
    }
    return MakeError(
        ErrorCode::kCorrupt,
        first ? fmt::format("the file is empty, wanted '{},{}'", kFormat, kVersion)
              : fmt::format("the file ends before the line of columns, '{},...'", kLayer));
  }

  Status ReadKey(std::string_view key, std::string_view value) {
    for (const TextKey& text : kTextKeys)
      if (text.name == key) {
        if (value.empty()) return Fault(fmt::format("{}: found nothing, wanted a text", key));
        workload_.*text.field = value;
        return {};
      }
    std::string accepted;
    for (const TextKey& text : kTextKeys) accepted += fmt::format("{}, ", text.name);
    for (const NumberKey& known : kNumberKeys) {
      if (known.name == key) {
        const Result<int64_t> number = Number(value, key, 1, known.most);
        if (!number) return tl::unexpected(number.error());
        workload_.*known.field = *number;
        return {};
      }
      accepted += fmt::format("{}, ", known.name);
    }
    return Fault(fmt::format("unknown key {}; accepted: {}{}", Found(key), accepted, kLayer));
  }

  Status ReadColumns() {
    columns_ = Fields(line_);
    std::string accepted = fmt::format("{}, {}", kLayer, kTensor);
    for (const Column& column : kColumns) accepted += fmt::format(", {}", column.name);
    for (size_t i = 0; i < columns_.size(); ++i) {
      if (std::count(columns_.begin(), columns_.end(), columns_[i]) > 1)
        return Fault(fmt::format("the column {} stands twice", Found(columns_[i])));
      const Column* known = Find(columns_[i]);
      if (known == nullptr && columns_[i] != kLayer && columns_[i] != kTensor)
        return Fault(fmt::format("unknown column {}; accepted: {}", Found(columns_[i]), accepted));
    }
    for (const Column& column : kColumns)
      if (column.required &&
          std::find(columns_.begin(), columns_.end(), column.name) == columns_.end())
        return Fault(fmt::format("the column '{}' is missing", column.name));
    return {};
  }

  static const Column* Find(std::string_view name) {
    const auto* at = std::find_if(kColumns.begin(), kColumns.end(),
                                  [name](const Column& column) { return column.name == name; });
    return at == kColumns.end() ? nullptr : &*at;
  }

  Status ReadLayer() {
    const std::vector<std::string_view> fields = Fields(line_);
    if (fields.size() != columns_.size())
      return Fault(
          fmt::format("{} fields, wanted {}: one a column", fields.size(), columns_.size()));
    if (workload_.layers.size() == kMaxLayers)
      return Fault(fmt::format("more than {} layers", kMaxLayers));
    WorkloadLayer layer;
    for (size_t i = 0; i < fields.size(); ++i) {
      if (columns_[i] == kLayer) {
        if (fields[i].empty()) return Fault("layer: found nothing, wanted a name");
        layer.name = fields[i];
      } else if (columns_[i] == kTensor) {
        if (fields[i] != kSplit && fields[i] != kWhole)
          return Fault(fmt::format("{}: found {}, wanted '{}' or '{}'", kTensor, Found(fields[i]),
                                   kSplit, kWhole));
        layer.split = fields[i] == kSplit;
      } else {
        const Column& column = *Find(columns_[i]);
        const Result<int64_t> number = Number(fields[i], column.name, column.least, kMaxNumber);
        if (!number) return tl::unexpected(number.error());
        layer.*column.field = *number;
      }
    }
    for (size_t i = 0; i < kColumns.size(); ++i) {
      sums_[i] += layer.*kColumns[i].field;
      if (sums_[i] > kMaxSum)
        return Fault(
            fmt::format("{}: the layers so far add up to more than {}", kColumns[i].name, kMaxSum));
    }
    workload_.layers.push_back(std::move(layer));
    return {};
  }

  std::string_view rest_, line_;
  int64_t number_ = 0;
  std::string fault_;
  std::vector<std::string_view> columns_;
  std::array<int64_t, kColumns.size()> sums_{};
  TrainingWorkload workload_;
};

}  // namespace

Result<TrainingWorkload> ParseTrainingWorkload(std::string_view text) {
  return Parser(text).Parse();
}

Result<TrainingWorkload> LoadTrainingWorkload(const std::string& name_or_path) {
  constexpr std::string_view kSuffix = ".csv";
  const bool is_path = name_or_path.size() > kSuffix.size() &&
                       name_or_path.substr(name_or_path.size() - kSuffix.size()) == kSuffix;
  if (is_path) {
    const Result<std::string> text = ReadFile(name_or_path);
    if (!text) return tl::unexpected(text.error());
    Result<TrainingWorkload> workload = ParseTrainingWorkload(*text);
    if (!workload) return Within(name_or_path, workload.error());
    return workload;
  }
  for (const BuiltInWorkload& file : BuiltInWorkloadFiles())
    if (file.name == name_or_path) return ParseTrainingWorkload(file.text);
  const std::vector<std::string_view> names = BuiltInWorkloads();
  return MakeError(
      ErrorCode::kNotFound,
      fmt::format("unknown workload '{}'{}; accepted are {}, or a file that ends in {}",
                  name_or_path, NearestHint(name_or_path, names), fmt::join(names, ", "), kSuffix));
}

std::vector<std::string_view> BuiltInWorkloads() {
  std::vector<std::string_view> names;
  for (const BuiltInWorkload& file : BuiltInWorkloadFiles()) names.push_back(file.name);
  return names;
}

}  // namespace tutti
