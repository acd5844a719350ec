// Where a parser of JSON is in its text, and which keys the objects around it have so far: for
// messages, and for keys that an object has twice, which parsers take without a word.
//
// Calls      A value: Value(), or Open() ... Close(). A member of an object: Key(), then its value.
//   if (!path.Key(name)) return Fault(path.Twice(name));  // "$.gpus[0]: the key 'id' is twice"
// Complexity Key(): O(log keys of its object); memory: the keys of the objects that are open.
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace tutti {

class JsonPath {
 public:
  void Value();
  void Open(bool is_array);
  void Close() { levels_.pop_back(); }
  // False where the object has it already.
  bool Key(const std::string& key);

  // Objects and arrays that are open.
  size_t depth() const { return levels_.size(); }
  // Of what was begun last: "$.gpus[0].ops[3]". Keys are cut, and printable.
  std::string Text() const;
  std::string Twice(std::string_view key) const;

 private:
  struct Level {
    std::set<std::string> keys;  // of an object
    std::string key;             // the last of them
    int64_t values = 0;          // of an array
    bool is_array = false;
  };

  std::string TextOf(size_t levels) const;

  std::vector<Level> levels_;
};

}  // namespace tutti
