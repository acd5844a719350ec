#include "barrier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "barrier_explorer.h"

namespace tutti::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Action = BarrierAction::Kind;
using Event = BarrierEvent::Kind;
using Phase = BarrierPhase;

BarrierState Fresh(int32_t daemons, int32_t self, int32_t local_ranks = 1) {
  BarrierState state;
  state.daemons = daemons;
  state.self = self;
  state.local_ranks = local_ranks;
  return state;
}

// The events one after the other, all accepted; the actions of the last.
std::vector<BarrierAction> After(BarrierState& state, const std::vector<BarrierEvent>& events) {
  std::vector<BarrierAction> actions;
  for (const BarrierEvent& event : events) {
    const BarrierStep step = Step(state, event);
    EXPECT_EQ(step.refused, "");
    state = step.state;
    actions.assign(step.actions().begin(), step.actions().end());
  }
  return actions;
}

const BarrierEvent kCommand{.kind = Event::kCommand};
const BarrierEvent kPrepare{.kind = Event::kPrepare, .epoch = 1};
const BarrierEvent kOpened{.kind = Event::kOpened, .epoch = 1};
const BarrierEvent kCommit{.kind = Event::kCommit, .epoch = 1};

// Figure 4 of [mccs]: rank 0 has launched a collective when the request reaches it, the others have
// not. All of them run it before they change.
TEST(Barrier, FigureFourByHand) {
  BarrierState zero = Fresh(3, 0), one = Fresh(3, 1);
  After(zero, {kPrepare, kOpened, kCommand});
  After(one, {kPrepare, kOpened});
  EXPECT_THAT(After(one, {kCommit}), ElementsAre(BarrierAction{Action::kSend, 0, 1, 1, 0}));
  EXPECT_EQ(one.phase, Phase::kHolding);
  EXPECT_FALSE(MayLaunch(one, 0));
  EXPECT_EQ(Step(one, kCommand).refused, "launches are held");
  EXPECT_THAT(After(zero, {kCommit}), ElementsAre(BarrierAction{Action::kSend, 0, 0, 1, 1}));
  // One hears 1 of zero and passes it on, then 0 of two, which ends there.
  EXPECT_THAT(After(one, {{.kind = Event::kMessage, .origin = 0, .epoch = 1, .value = 1}}),
              ElementsAre(BarrierAction{Action::kSend, 0, 0, 1, 1}));
  EXPECT_THAT(After(one, {{.kind = Event::kMessage, .origin = 2, .epoch = 1, .value = 0}}),
              IsEmpty());
  EXPECT_EQ(one.phase, Phase::kSwitching);
  EXPECT_EQ(one.maximum, 1u);
  // Sequence 1 under the old epoch, 2 under the new one.
  EXPECT_THAT(After(one, {kCommand}), ElementsAre(BarrierAction{Action::kLaunch, 0, 0, 0, 1}));
  EXPECT_EQ(one.phase, Phase::kActive);
  EXPECT_EQ(one.epoch, 1u);
  EXPECT_THAT(After(one, {kCommand}), ElementsAre(BarrierAction{Action::kLaunch, 0, 0, 1, 2}));
  EXPECT_THAT(After(one, {{.kind = Event::kDrained}}),
              ElementsAre(BarrierAction{Action::kClose, 0, 0, 0, 0},
                          BarrierAction{Action::kTellSwitched, 0, 0, 1, 0}));
}

TEST(Barrier, AMessageOfTheRingIsTheRequest) {
  BarrierState state = Fresh(3, 1);
  EXPECT_THAT(After(state, {kPrepare,
                            kOpened,
                            kCommand,
                            {.kind = Event::kMessage, .origin = 0, .epoch = 1, .value = 5}}),
              ElementsAre(BarrierAction{Action::kSend, 0, 1, 1, 1},
                          BarrierAction{Action::kSend, 0, 0, 1, 5}));
  EXPECT_EQ(state.phase, Phase::kHolding);
  EXPECT_THAT(After(state, {kCommit}), IsEmpty());  // known already
}

// A rank that is past M goes on under the new epoch while another one of the host catches up.
TEST(Barrier, LocalRanksSwitchOneByOne) {
  BarrierState state = Fresh(1, 0, 2);
  After(state, {kCommand, kCommand, kPrepare, kOpened});
  EXPECT_THAT(After(state, {kCommit}), IsEmpty());
  EXPECT_EQ(state.phase, Phase::kSwitching);
  EXPECT_THAT(After(state, {kCommand}), ElementsAre(BarrierAction{Action::kLaunch, 0, 0, 1, 3}));
  const BarrierEvent other{.kind = Event::kCommand, .rank = 1};
  EXPECT_THAT(After(state, {other}), ElementsAre(BarrierAction{Action::kLaunch, 1, 0, 0, 1}));
  EXPECT_EQ(state.phase, Phase::kSwitching);
  After(state, {other});
  EXPECT_EQ(state.phase, Phase::kActive);
  EXPECT_THAT(After(state, {other}), ElementsAre(BarrierAction{Action::kLaunch, 1, 0, 1, 3}));
}

TEST(Barrier, DiscardAndPrepareAgain) {
  BarrierState state = Fresh(2, 0);
  After(state, {kPrepare, kOpened});
  EXPECT_THAT(After(state, {kPrepare}), ElementsAre(BarrierAction{Action::kClose, 0, 0, 1, 0},
                                                    BarrierAction{Action::kOpen, 0, 0, 1, 0}));
  EXPECT_THAT(After(state, {kOpened, {.kind = Event::kDiscard, .epoch = 1}}),
              ElementsAre(BarrierAction{Action::kClose, 0, 0, 1, 0}));
  EXPECT_EQ(state.phase, Phase::kActive);
  After(state, {kPrepare, {.kind = Event::kOpenFailed, .epoch = 1}});
  EXPECT_EQ(state.phase, Phase::kActive);
}

TEST(Barrier, DeathGoesRoundTheRing) {
  BarrierState state = Fresh(4, 2);
  EXPECT_THAT(After(state, {{.kind = Event::kPeerLost, .origin = 1}}),
              ElementsAre(BarrierAction{Action::kSendAbort, 0, 1, 0, 0},
                          BarrierAction{Action::kFailPending, 0, 1, 0, 0}));
  EXPECT_EQ(Step(state, kCommand).refused, "the communicator has failed");
  BarrierState before = Fresh(4, 0);  // the next one is the dead one
  EXPECT_THAT(After(before, {{.kind = Event::kAbort, .origin = 1}}),
              ElementsAre(BarrierAction{Action::kFailPending, 0, 1, 0, 0}));
}

TEST(Barrier, RefusesByNameAndChangesNothing) {
  BarrierState prepared = Fresh(2, 0), holding = Fresh(2, 0), draining = Fresh(1, 0);
  After(prepared, {kPrepare, kOpened});
  After(holding, {kPrepare, kOpened, kCommit});
  After(draining, {kPrepare, kOpened, kCommit});
  BarrierState newer = Fresh(2, 0);
  After(newer, {{.kind = Event::kInventory, .generation = 3}});
  struct Row {
    BarrierState state;
    BarrierEvent event;
    const char* why;
  };
  const std::vector<Row> rows = {
      {Fresh(2, 0), {.kind = Event::kCommand, .rank = 1}, "no such local rank"},
      {Fresh(2, 0), {.kind = Event::kCommand, .rank = -1}, "no such local rank"},
      {Fresh(2, 0), {.kind = Event::kPrepare, .epoch = 2}, "not the next epoch"},
      {Fresh(2, 0), kOpened, "nothing was being opened"},
      {Fresh(2, 0), {.kind = Event::kDiscard, .epoch = 1}, "nothing is prepared"},
      {Fresh(2, 0), kCommit, "not prepared"},
      {Fresh(2, 0), {.kind = Event::kDrained}, "nothing is being drained"},
      {prepared, {.kind = Event::kDiscard, .epoch = 2}, "not the next epoch"},
      {prepared, {.kind = Event::kCommit, .epoch = 2}, "not prepared"},
      {holding, kPrepare, "busy: a reconfiguration is under way"},
      {holding, kCommand, "launches are held"},
      {draining, {.kind = Event::kPrepare, .epoch = 2}, "busy: a reconfiguration is under way"},
      {newer,
       {.kind = Event::kPrepare, .epoch = 1, .generation = 2},
       "a newer controller has taken over"},
  };
  for (const Row& row : rows) {
    const BarrierStep step = Step(row.state, row.event);
    EXPECT_EQ(step.refused, row.why);
    EXPECT_THAT(step.actions(), IsEmpty());
    EXPECT_EQ(step.state.phase, row.state.phase);
    EXPECT_EQ(step.state.epoch, row.state.epoch);
  }
}

// What a peer may never send ends the communicator and names the daemon it came through.
TEST(Barrier, WrongMessagesOfPeersFailTheCommunicator) {
  const BarrierEvent good{.kind = Event::kMessage, .origin = 0, .epoch = 1};
  BarrierState prepared = Fresh(3, 1), twice = Fresh(3, 1), done = Fresh(2, 1);
  After(prepared, {kPrepare, kOpened});
  After(twice, {kPrepare, kOpened, good});
  After(done, {kPrepare, kOpened, good});
  struct Row {
    BarrierState state;
    BarrierEvent event;
  };
  const std::vector<Row> rows = {{Fresh(3, 1), good},  // not prepared
                                 {prepared, {.kind = Event::kMessage, .origin = 2, .epoch = 1}},
                                 {prepared, {.kind = Event::kMessage, .origin = 1, .epoch = 1}},
                                 {prepared, {.kind = Event::kMessage, .origin = 7, .epoch = 1}},
                                 {prepared, {.kind = Event::kMessage, .origin = 0, .epoch = 2}},
                                 {twice, good},
                                 {done, good}};
  for (const Row& row : rows) {
    const BarrierStep step = Step(row.state, row.event);
    EXPECT_EQ(step.state.phase, Phase::kFailed);
    EXPECT_EQ(step.state.culprit, 0);
  }
}

size_t Explored(const ExplorerOptions& options) {
  BarrierExplorer explorer(options);
  const std::string broken = explorer.Explore();
  EXPECT_EQ(broken, "");
  return explorer.states();
}

TEST(BarrierExplorer, TwoDaemonsInEveryOrder) {
  EXPECT_GT(Explored({}), 500u);
  EXPECT_GT(Explored({.first_has_ranks = 2}), 2000u);
  Explored({.controller_may_die = true});
  Explored({.controller_may_die = true, .successor = true});
  Explored({.controller_may_die = true, .successor = true, .daemon_may_die = true});
}

TEST(BarrierExplorer, ThreeDaemonsInEveryOrder) {
  Explored({.daemons = 3, .requests = 0});
  EXPECT_GT(Explored({.daemons = 3, .sequences = 2, .requests = 2}), 5000u);
  Explored({.daemons = 3,
            .sequences = 2,
            .requests = 1,
            .controller_may_die = true,
            .successor = true,
            .daemon_may_die = true});
}

TEST(BarrierExplorer, MessagesThatSomeExchangeInEveryOrder) {
  EXPECT_GT(Explored({.some_exchange = true}), 1000u);
  Explored({.daemons = 3, .sequences = 2, .requests = 1, .some_exchange = true});
  Explored({.sequences = 2, .first_has_ranks = 2, .some_exchange = true});
}

// Rank 0 has sent a message before collective 1, which nobody has launched: whoever takes it, and then collective 1, does so
// under the same connections.
TEST(Barrier, MessagesAreOfTheNumberOfTheNextCollective) {
  const BarrierEvent exchange{.kind = Event::kExchange};
  BarrierState zero = Fresh(2, 0), one = Fresh(2, 1);
  EXPECT_THAT(After(zero, {exchange}), ElementsAre(BarrierAction{Action::kLaunch, 0, 0, 0, 1}));
  EXPECT_THAT(After(zero, {kPrepare, kOpened, kCommit}),
              ElementsAre(BarrierAction{Action::kSend, 0, 0, 1, 1}));
  After(one, {kPrepare, kOpened, kCommit});
  After(one, {{.kind = Event::kMessage, .origin = 0, .epoch = 1, .value = 1}});
  After(zero, {{.kind = Event::kMessage, .origin = 1, .epoch = 1, .value = 0}});
  EXPECT_THAT(After(one, {exchange}), ElementsAre(BarrierAction{Action::kLaunch, 0, 0, 0, 1}));
  for (BarrierState* each : {&zero, &one}) {
    EXPECT_EQ(each->phase, Phase::kSwitching);
    EXPECT_THAT(After(*each, {kCommand}), ElementsAre(BarrierAction{Action::kLaunch, 0, 0, 0, 1}));
    EXPECT_EQ(each->phase, Phase::kActive);
    EXPECT_THAT(After(*each, {exchange}), ElementsAre(BarrierAction{Action::kLaunch, 0, 0, 1, 2}));
  }
}

TEST(BarrierExplorer, FourDaemonsInEveryOrder) {
  Explored({.daemons = 4, .sequences = 1, .requests = 1, .controller_may_die = true});
}

TEST(BarrierExplorerSlow, ThreeDaemonsThreeSequencesTwoRequestsAndAnyDeath) {
  const size_t states = Explored({.daemons = 3,
                                  .sequences = 3,
                                  .requests = 2,
                                  .controller_may_die = true,
                                  .successor = true,
                                  .daemon_may_die = true});
  RecordProperty("states", std::to_string(states));
}

TEST(BarrierExplorerByHand, FourDaemonsThreeSequencesTwoRequests) {
  const size_t states = Explored({.daemons = 4, .sequences = 3, .requests = 2});
  RecordProperty("states", std::to_string(states));
}

// The three faults that the protocol is there to prevent are found, with a way to each.
TEST(BarrierExplorer, FindsTheSeededFaults) {
  const auto table = [](SeededFault fault, bool controller_may_die) {
    return BarrierExplorer({.daemons = 3,
                            .sequences = 2,
                            .requests = 1,
                            .controller_may_die = controller_may_die,
                            .fault = fault})
        .Explore();
  };
  EXPECT_THAT(table(SeededFault::kOwnCommitOnly, true), HasSubstr("B7: daemon"));
  EXPECT_THAT(table(SeededFault::kOwnCommitOnly, true), HasSubstr("the controller dies"));
  // Without a death everybody gets his own commit in the end.
  EXPECT_EQ(table(SeededFault::kOwnCommitOnly, false), "");
  EXPECT_THAT(table(SeededFault::kOwnNumber, false), HasSubstr("B2: one sequence in two epochs"));
  EXPECT_THAT(table(SeededFault::kNoBarrier, false), HasSubstr("B2: one sequence in two epochs"));
}

}  // namespace
}  // namespace tutti::service
