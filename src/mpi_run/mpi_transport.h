// MpiTransport: the connections of one rank over MPI.
//
// Model       Each connection is a tag (its channel) between two ranks of a communicator that nobody else uses.
//             A message is packed when it is posted, behind a header with its call and number, and
//             sent by a request; so its source is released at once, and no message keeps an exchange
//             in place from going on. The receiver asks for what has come (a matched probe), receives it as a
//             whole, one message ahead of the one that is taken, and moves it from there.
//             MPI moves messages in its calls only: a rank that waits elsewhere goes on polling
//             (moves_by_itself), until its requests are over (is_quiet).
// Errors      A connection fails where an MPI call does, where a message is of another call, and where its channel
//             is no tag of this MPI library. A peer that dies is the launcher's to end.
// Threads     One, that which initialised MPI or is allowed to call it.
#pragma once

#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "connection.h"
#include "tutti/base/result.h"

namespace tutti {

class MpiSender final : public Connection {
 public:
  MpiSender(MPI_Comm ranks, int32_t peer, int tag, uint64_t signature, std::string name);
  ~MpiSender() override;
  MpiSender(const MpiSender&) = delete;
  MpiSender& operator=(const MpiSender&) = delete;

  bool TryPost(const Piece& source) override;
  uint64_t released() const override { return posted_; }
  bool Save(uint64_t, const Piece&) override { return true; }  // it is packed
  Progress TryTake(const Target&, int64_t&) override { return Progress::kNothing; }
  Status health() const override { return health_; }

  // True: a request has ended.
  bool Advance();
  bool is_quiet() const { return ended_ == posted_; }
  void Fail(const std::string& what);

 private:
  struct Sent {
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
  };

  MPI_Comm ranks_;
  int peer_, tag_;
  uint64_t signature_;
  std::string name_;
  std::array<Sent, kWindow> window_;
  uint64_t posted_ = 0, ended_ = 0;
  Status health_;
};

class MpiReceiver final : public Connection {
 public:
  MpiReceiver(MPI_Comm ranks, int32_t peer, int tag, uint64_t signature, std::string name);
  ~MpiReceiver() override;
  MpiReceiver(const MpiReceiver&) = delete;
  MpiReceiver& operator=(const MpiReceiver&) = delete;

  bool TryPost(const Piece&) override { return false; }
  uint64_t released() const override { return 0; }
  bool Save(uint64_t, const Piece&) override { return false; }
  Progress TryTake(const Target& target, int64_t& budget) override;
  Status health() const override { return health_; }

  // Begins to receive what has come. True: something has come, or is there wholly now.
  bool Advance();
  void Fail(const std::string& what);

 private:
  enum class Stage : uint8_t { kIdle, kReceiving, kReady };
  struct Received {
    std::vector<std::byte> bytes;
    MPI_Request request = MPI_REQUEST_NULL;
    Stage stage = Stage::kIdle;
  };

  bool AdvanceOne(Received& message);
  // About the message that is ready: whether it is the one that is wanted.
  bool CheckHeader(const Target& target);

  MPI_Comm ranks_;
  int peer_, tag_;
  uint64_t signature_;
  std::string name_;
  std::array<Received, 2> received_;  // message k in k mod 2
  uint64_t taken_ = 0;
  bool header_seen_ = false;
  Cursor cursor_;
  Status health_;
};

class MpiTransport final : public PeerTransport {
 public:
  // Rank `rank` of `ranks`, which must outlive it, and on which nobody else sends. `signature`: of the call.
  static Result<std::unique_ptr<MpiTransport>> Make(MPI_Comm ranks, int32_t rank,
                                                    uint64_t signature);

  Connection* SendTo(int32_t peer, int32_t channel) override;
  Connection* ReceiveFrom(int32_t peer, int32_t channel) override;
  bool Poll(int wait_ms) override;
  bool moves_by_itself() const override { return false; }
  bool is_quiet() const override;

 private:
  MpiTransport(MPI_Comm ranks, int32_t rank, uint64_t signature, int max_tag)
      : ranks_(ranks), rank_(rank), signature_(signature), max_tag_(max_tag) {}
  bool AdvanceAll();
  // Nothing where the channel is a tag.
  std::string FaultOf(int32_t channel) const;

  MPI_Comm ranks_;
  int32_t rank_;
  uint64_t signature_;
  int max_tag_;
  std::deque<MpiSender> senders_;
  std::deque<MpiReceiver> receivers_;
};

}  // namespace tutti
