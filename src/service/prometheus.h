// PrometheusText: metrics in the text exposition format, version 0.0.4.
//
// Model       A family begins with Family(); its samples follow. Label values are escaped; names are the caller's.
// Reference   prometheus.io/docs/instrumenting/exposition_formats
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace tutti::service {

// Counts seconds, in buckets that are those of all histograms here.
class Histogram {
 public:
  static constexpr std::array<double, 15> kBounds = {
      1e-5, 2.5e-5, 1e-4, 2.5e-4, 5e-4, 1e-3, 2.5e-3, 5e-3, 1e-2, 2.5e-2, 1e-1, 2.5e-1, 1, 2.5, 10};

  void Add(double seconds) {
    size_t bucket = 0;
    while (bucket < kBounds.size() && seconds > kBounds[bucket]) ++bucket;
    ++counts_[bucket];
    ++count_;
    sum_ += seconds;
  }
  int64_t count() const { return count_; }
  double sum() const { return sum_; }
  // Not more than that of kBounds.
  int64_t UpTo(size_t bound) const {
    int64_t total = 0;
    for (size_t i = 0; i <= bound; ++i) total += counts_[i];
    return total;
  }

 private:
  std::array<int64_t, kBounds.size() + 1> counts_{};
  int64_t count_ = 0;
  double sum_ = 0;
};

class PrometheusText {
 public:
  using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

  // `type`: counter, gauge or histogram.
  void Family(std::string_view name, std::string_view type, std::string_view help);
  // A sample of the family begun last.
  void Add(Labels labels, double value);
  void Add(Labels labels, const Histogram& histogram);
  const std::string& text() const { return text_; }

 private:
  void Sample(std::string_view suffix, Labels labels, std::string_view bound, double value);

  std::string text_, name_;
};

}  // namespace tutti::service
