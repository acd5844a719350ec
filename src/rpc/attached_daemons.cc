#include "attached_daemons.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

namespace tutti::rpc {
namespace {

class AttachedLink final : public controller::DaemonLink {
 public:
  AttachedLink(AttachedDaemons::State& state, std::string host)
      : state_(state), host_(std::move(host)) {}
  Result<std::string> Ask(const std::string& request) override {
    return state_.Ask(host_, request);
  }

 private:
  AttachedDaemons::State& state_;
  std::string host_;
};

}  // namespace

AttachedDaemons::AttachedDaemons() : state_(std::make_shared<State>()) {}
AttachedDaemons::~AttachedDaemons() = default;

std::unique_ptr<controller::DaemonLink> AttachedDaemons::LinkTo(std::string host) {
  return std::make_unique<AttachedLink>(*state_, std::move(host));
}

uint64_t AttachedDaemons::State::Attach(const std::string& host, Send send) {
  const std::lock_guard lock(mutex_);
  daemons_[host] = {++attachments_, std::make_shared<Send>(std::move(send))};
  return attachments_;
}

void AttachedDaemons::State::Detach(const std::string& host, uint64_t attachment) {
  const std::lock_guard lock(mutex_);
  const auto found = daemons_.find(host);
  if (found != daemons_.end() && found->second.attachment == attachment) daemons_.erase(found);
  for (auto& [number, question] : questions_)
    if (question.attachment == attachment && !question.answer)
      question.answer =
          MakeError(ErrorCode::kPeerFailed, fmt::format("the daemon of {} has gone", host));
  answered_.notify_all();
}

void AttachedDaemons::State::Answer(uint64_t attachment, uint64_t question,
                                    Result<std::string> answer) {
  const std::lock_guard lock(mutex_);
  const auto found = questions_.find(question);
  // Too late, or somebody else's.
  if (found == questions_.end() || found->second.attachment != attachment) return;
  found->second.answer = std::move(answer);
  answered_.notify_all();
}

Result<std::string> AttachedDaemons::State::Ask(const std::string& host,
                                                const std::string& request) {
  constexpr std::chrono::seconds kPatience{10};
  std::unique_lock lock(mutex_);
  const auto daemon = daemons_.find(host);
  if (daemon == daemons_.end())
    return MakeError(ErrorCode::kPeerFailed, fmt::format("no daemon of {} is attached", host));
  const uint64_t number = ++asked_;
  questions_[number].attachment = daemon->second.attachment;
  const std::shared_ptr<Send> send = daemon->second.send;
  lock.unlock();
  const bool sent = (*send)(number, request);
  lock.lock();
  Question& question = questions_[number];
  if (sent)
    answered_.wait_for(lock, kPatience, [&question] { return question.answer.has_value(); });
  Result<std::string> answer =
      question.answer
          ? std::move(*question.answer)
          : MakeError(ErrorCode::kPeerFailed, fmt::format("the daemon of {} {}", host,
                                                          sent ? "gives no answer" : "has gone"));
  questions_.erase(number);
  return answer;
}

}  // namespace tutti::rpc
