#include "step_messages.h"

namespace tutti::sim {

StepMessages::StepMessages(const Topology& topology, const Schedule& schedule,
                           const Recorder& recorder)
    : schedule_(schedule),
      recorder_(recorder),
      step_of_link_(static_cast<size_t>(topology.num_links()), -1),
      message_of_link_(static_cast<size_t>(topology.num_links())) {}

bool StepMessages::Next() {
  const std::vector<Transfer>& transfers = schedule_.transfers;
  first_ = last_;
  if (first_ == transfers.size()) return false;
  step_ = transfers[first_].step;
  messages_.clear();
  message_of_.clear();
  while (last_ < transfers.size() && transfers[last_].step == step_) {
    const Transfer& transfer = transfers[last_];
    const size_t link = transfer.link.index();
    if (step_of_link_[link] != step_) {
      step_of_link_[link] = step_;
      message_of_link_[link] = static_cast<uint32_t>(messages_.size());
      messages_.push_back({transfer.link, 0, static_cast<int64_t>(last_)});
    }
    messages_[message_of_link_[link]].bytes += recorder_.Bytes(transfer);
    message_of_.push_back(message_of_link_[link]);
    ++last_;
  }
  return true;
}

}  // namespace tutti::sim
