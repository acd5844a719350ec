/* The reconfiguration barrier (src/service/barrier.h) for the model checker spin.
 *
 * N daemons on a ring with one rank each, K collectives, E requests. The controller sends each request
 * to all, in any order; with CRASH it may die between any two sends. Tenants issue whenever they like.
 * st: 0 active, 1 holding, 2 switching. Invariants: B1 by construction, B2 in `check`, B7 at the end.
 *
 * Faults that must be found (run.sh): OWN_COMMIT (messages of the ring are no request; with CRASH it
 * hangs), OWN_NUMBER (the own number instead of the maximum), NO_BARRIER (a request switches at once).
 * Unlike barrier.h there is no Prepare: a daemon keeps a request of a later epoch until its turn. */
#ifndef N
#define N 3
#endif
#ifndef K
#define K 2
#endif
#ifndef E
#define E 2
#endif
#define NEXT(i) ((i + 1) % N)

byte issued[N], last[N], cur[N], st[N], got[N], mx[N];
byte ep[N * (K + 1)];        /* epoch + 1 of each launch, 0: none */
bool crashed;
chan ring[N] = [2 * N] of { byte, byte, byte };  /* epoch, origin, number */
chan req[N] = [E] of { byte };

/* B2: all that have launched a sequence did so in one epoch. */
inline check(i, s) {
  j = 0;
  do
  :: j < N -> assert(ep[j * (K + 1) + s] == 0 || ep[j * (K + 1) + s] == ep[i * (K + 1) + s]); j++
  :: else -> break
  od;
  j = 0
}

inline enter(i) {
  st[i] = 1; got[i] = 1; mx[i] = last[i];
  ring[NEXT(i)]!cur[i] + 1, i, last[i]
}

/* Others may have launched the one before or not: ranks run ahead of each other freely. */
proctype Daemon(byte i) {
  byte e, o, s, j;
end:
  do
  :: atomic { issued[i] < K -> issued[i]++ }
  :: atomic {
       (st[i] == 0 || (st[i] == 2 && last[i] < mx[i])) && issued[i] > last[i] ->
       last[i]++; ep[i * (K + 1) + last[i]] = cur[i] + 1; check(i, last[i])
     }
  :: atomic {
       st[i] == 0 && nempty(req[i]) -> req[i]?<e>;
       if
       :: e == cur[i] + 1 -> req[i]?e;
#ifdef NO_BARRIER
          cur[i]++
#else
          enter(i)
#endif
       :: e <= cur[i] -> req[i]?e
       :: else -> skip
       fi
     }
#ifndef OWN_COMMIT
  :: atomic { st[i] == 0 && nempty(ring[i]) -> enter(i) }
#endif
  :: atomic {
       st[i] == 1 && nempty(ring[i]) -> ring[i]?e, o, s;
       assert(e == cur[i] + 1);
#ifndef OWN_NUMBER
       if :: s > mx[i] -> mx[i] = s :: else -> skip fi;
#endif
       got[i]++;
       if :: NEXT(i) != o -> ring[NEXT(i)]!e, o, s :: else -> skip fi;
       if :: got[i] == N -> st[i] = 2 :: else -> skip fi
     }
  :: atomic { st[i] == 2 && last[i] >= mx[i] -> cur[i]++; st[i] = 0; got[i] = 0; mx[i] = 0 }
  od
}

proctype Controller() {
  byte r = 1, d, sent;
  do
  :: r > E -> break
  :: r <= E ->
     sent = 0; /* bits of the daemons that have been told */
     do
     :: sent == (1 << N) - 1 -> break
#ifdef CRASH
     :: atomic { sent != (1 << N) - 1 -> crashed = true; goto dead }
#endif
     :: atomic {
          sent != (1 << N) - 1 ->
          select(d : 0 .. N - 1);
          if
          :: (sent >> d) & 1 -> skip
          :: else -> req[d]!r; sent = sent | (1 << d)
          fi
        }
     od;
     r++
  od;
dead:
  skip
}

/* Where nothing else can happen. */
proctype Monitor() {
  byte i;
end:
  atomic {
    timeout ->
    i = 0;
    do
    :: i < N ->
       assert(last[i] == K && st[i] == 0 && cur[i] == cur[0] && (crashed || cur[i] == E)); /* B7 */
       i++
    :: else -> break
    od
  }
}

init {
  byte i;
  atomic {
    i = 0;
    do
    :: i < N -> run Daemon(i); i++
    :: else -> break
    od;
    run Controller();
    run Monitor()
  }
}
