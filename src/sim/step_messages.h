// The messages of one step: all transfers of a step over one link are one message.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "recorder.h"

namespace tutti::sim {

class StepMessages {
 public:
  struct Message {
    LinkId link;
    double bytes = 0;
    int64_t first_transfer = 0;
    double start_s = 0, arrive_s = 0;
  };

  StepMessages(const Topology& topology, const Schedule& schedule, const Recorder& recorder);

  // Takes the next step that carries something; false after the last. O(its transfers).
  bool Next();

  int32_t step() const { return step_; }
  std::span<Message> messages() { return messages_; }
  // The transfers of the step are [first, last), and the message of each.
  size_t first() const { return first_; }
  size_t last() const { return last_; }
  Message& MessageOf(size_t transfer) { return messages_[message_of_[transfer - first_]]; }

 private:
  const Schedule& schedule_;
  const Recorder& recorder_;
  int32_t step_ = -1;
  size_t first_ = 0, last_ = 0;
  std::vector<Message> messages_;
  std::vector<uint32_t> message_of_;
  std::vector<int32_t> step_of_link_;      // the last step in which the link carried something
  std::vector<uint32_t> message_of_link_;  // its message then
};

}  // namespace tutti::sim
