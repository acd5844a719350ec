// ConfigFields: takes fields out of an object of a configuration file and says which were wrong, or are no fields.
//
// Model       The first fault counts; what was not there leaves its variable as it was.
// Errors      Finish: kInvalidArgument "tenants[0].weight: got 0, wanted 1 to 64".
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "tutti/base/result.h"

namespace tutti::service {

class ConfigFields {
 public:
  // `place` is what names of fields are preceded by: "tenants[0]."
  ConfigFields(const nlohmann::json& object, std::string place)
      : object_(object), place_(std::move(place)) {}

  template <class Value>
  void Take(const char* key, Value& into) {
    known_.insert(key);
    if (!object_.contains(key) || !fault_.empty()) return;
    try {
      into = object_.at(key).get<Value>();
    } catch (const nlohmann::json::exception&) {
      fault_ = fmt::format("{}{}: got {}", place_, key, object_.at(key).dump());
    }
  }
  template <class Integer>
  void TakeCount(const char* key, int64_t least, int64_t most, Integer& into) {
    known_.insert(key);
    if (!object_.contains(key) || !fault_.empty()) return;
    const nlohmann::json& value = object_.at(key);
    if (!value.is_number_integer() || value.get<int64_t>() < least || value.get<int64_t>() > most)
      fault_ = fmt::format("{}{}: got {}, wanted {} to {}", place_, key, value.dump(), least, most);
    else
      into = static_cast<Integer>(value.get<int64_t>());
  }
  // A field that somebody else reads.
  void Leave(const char* key) { known_.insert(key); }
  Status Finish() {
    if (fault_.empty())
      for (const auto& [key, value] : object_.items())
        if (known_.count(key) == 0) fault_ = fmt::format("{}{}: is no field", place_, key);
    if (!fault_.empty()) return InvalidArgument(fault_);
    return {};
  }

 private:
  const nlohmann::json& object_;
  std::string place_, fault_;
  std::set<std::string> known_;
};

}  // namespace tutti::service
