#include "prometheus.h"

#include <fmt/format.h>

#include <cmath>

namespace tutti::service {
namespace {

void AppendEscaped(std::string_view value, std::string& to) {
  for (const char c : value) {
    if (c == '\n') {
      to += "\\n";
      continue;
    }
    if (c == '\\' || c == '"') to += '\\';
    to += c;
  }
}

std::string NumberText(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

}  // namespace

void PrometheusText::Family(std::string_view name, std::string_view type, std::string_view help) {
  name_ = name;
  text_ += fmt::format("# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void PrometheusText::Sample(std::string_view suffix, Labels labels, std::string_view bound,
                            double value) {
  text_ += name_;
  text_ += suffix;
  const char* before = "{";
  const auto label = [&](std::string_view key, std::string_view of) {
    text_ += before;
    text_ += key;
    text_ += "=\"";
    AppendEscaped(of, text_);
    text_ += '"';
    before = ",";
  };
  for (const auto& [key, of] : labels) label(key, of);
  if (!bound.empty()) label("le", bound);
  if (*before == ',') text_ += '}';
  text_ += ' ';
  text_ += NumberText(value);
  text_ += '\n';
}

void PrometheusText::Add(Labels labels, double value) { Sample("", labels, "", value); }

void PrometheusText::Add(Labels labels, const Histogram& histogram) {
  for (size_t i = 0; i < Histogram::kBounds.size(); ++i)
    Sample("_bucket", labels, NumberText(Histogram::kBounds[i]),
           static_cast<double>(histogram.UpTo(i)));
  Sample("_bucket", labels, "+Inf", static_cast<double>(histogram.count()));
  Sample("_sum", labels, "", histogram.sum());
  Sample("_count", labels, "", static_cast<double>(histogram.count()));
}

}  // namespace tutti::service
