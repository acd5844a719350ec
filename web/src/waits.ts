// Who waits for whom: for each message what it waited for last (what it carries, its link, the step before), the chain
// of such waits that ends with the last arrival, and how long ranks keep each other's links idle.
import type { Run } from './model';

// data: what it carries came last. link: the message before on its link. step: the last of the steps before. none: nothing.
export type Cause = { kind: 'data' | 'link' | 'step' | 'none'; message: number; at: number; idle: number }; // at: when that ended; idle: how long its link then stood free for it
export interface ChainLink { message: number; cause: Cause }
export interface PairWait { waiter: number; for: number; idle: number; messages: number }

export class Waits {
  private readonly before: Int32Array; // the message before on the same link; -1: none
  private readonly lastUpTo: Map<number, number> = new Map(); // by step: of all earlier steps the message that arrives last
  private readonly firstOf: Int32Array; // by message: its transfers in `ofMessage`
  private readonly ofMessage: Int32Array;
  private readonly into: Map<number, number[]> = new Map(); // by node and shard: transfers into it; of executions by node: messages
  private readonly messageOf: Int32Array; // by transfer

  constructor(private readonly run: Run) {
    const { flight, graph, schedule } = run;
    this.before = new Int32Array(flight.count).fill(-1);
    const last = new Int32Array(graph.tail.length).fill(-1);
    for (let i = 0; i < flight.count; ++i) {
      const link = flight.link[i]!;
      this.before[i] = last[link]!;
      last[link] = i;
    }
    const t = schedule.transfers;
    const count = t?.link.length ?? 0;
    this.messageOf = new Int32Array(count).fill(-1);
    this.firstOf = new Int32Array(flight.count + 1);
    for (let i = 0; i < count; ++i) {
      const message = run.messageOfTransfer(i);
      this.messageOf[i] = message;
      if (message >= 0) this.firstOf[message + 1]! += 1;
    }
    for (let i = 0; i < flight.count; ++i) this.firstOf[i + 1]! += this.firstOf[i]!;
    this.ofMessage = new Int32Array(count);
    const next = this.firstOf.slice();
    for (let i = 0; i < count; ++i) if (this.messageOf[i]! >= 0) this.ofMessage[next[this.messageOf[i]!]!++] = i;
    const put = (key: number, value: number): void => { const list = this.into.get(key); if (list) list.push(value); else this.into.set(key, [value]); };
    if (t) for (let i = 0; i < count; ++i) put(graph.head[t.link[i]!]! * schedule.shards + t.shard[i]!, i);
    else for (let i = 0; i < flight.count; ++i) put(graph.head[flight.link[i]!]!, i);
    this.sumUpSteps();
  }

  private sumUpSteps(): void {
    const { flight } = this.run;
    if (this.run.timed) return;
    const latest = new Map<number, number>();
    for (let i = 0; i < flight.count; ++i) {
      const step = flight.step[i]!, now = latest.get(step);
      if (now === undefined || flight.arrive[i]! > flight.arrive[now]!) latest.set(step, i);
    }
    let best = -1;
    for (const step of [...latest.keys()].sort((a, b) => a - b)) {
      this.lastUpTo.set(step, best);
      const one = latest.get(step)!;
      if (best < 0 || flight.arrive[one]! >= flight.arrive[best]!) best = one;
    }
  }

  // Of what a message carries, the arrival that came last; -1: its sender had all of it from the start.
  private lastData(message: number): number {
    const { flight, graph, schedule } = this.run;
    const t = schedule.transfers, tail = graph.tail[flight.link[message]!]!, start = flight.start[message]!;
    let best = -1;
    const see = (other: number): void => {
      if (other >= 0 && other !== message && flight.arrive[other]! <= start + 1 && (best < 0 || flight.arrive[other]! > flight.arrive[best]!)) best = other;
    };
    if (t === undefined) {
      for (const other of this.into.get(tail) ?? []) if (this.run.timed || flight.step[other]! < flight.step[message]!) see(other);
      return best;
    }
    for (let k = this.firstOf[message]!; k < this.firstOf[message + 1]!; ++k) {
      const one = this.ofMessage[k]!;
      for (const other of this.into.get(tail * schedule.shards + t.shard[one]!) ?? [])
        if (t.begin[other]! < t.end[one]! && t.end[other]! > t.begin[one]!) see(this.messageOf[other]!);
    }
    return best;
  }

  causeOf(message: number): Cause {
    const { flight, schedule } = this.run;
    const before = this.before[message]!, free = before < 0 ? 0 : flight.free[before]!;
    const data = this.lastData(message);
    const step = schedule.simulation?.mode === 'barrier' && !this.run.timed ? this.lastUpTo.get(flight.step[message]!) ?? -1 : -1;
    let cause: Cause = before < 0 ? { kind: 'none', message: -1, at: 0, idle: 0 } : { kind: 'link', message: before, at: free, idle: 0 };
    for (const [kind, other] of [['step', step], ['data', data]] as const)
      if (other >= 0 && (flight.arrive[other]! >= cause.at || cause.message < 0)) cause = { kind, message: other, at: flight.arrive[other]!, idle: 0 };
    if (cause.kind === 'data' || cause.kind === 'step') cause.idle = Math.max(0, cause.at - free);
    return cause;
  }

  // The message that arrives last.
  get last(): number {
    const { flight } = this.run;
    let best = -1;
    for (let i = 0; i < flight.count; ++i) if (best < 0 || flight.arrive[i]! > flight.arrive[best]!) best = i;
    return best;
  }

  // From a message that waits for nothing to this one, each waiting for the one before it.
  chainTo(message: number): ChainLink[] {
    const chain: ChainLink[] = [];
    for (let at = message; at >= 0 && chain.length <= this.run.flight.count;) {
      const cause = this.causeOf(at);
      chain.push({ message: at, cause });
      at = cause.message;
    }
    return chain.reverse();
  }

  // How long each rank's links stood free because of another's messages, the longest first.
  pairs(): PairWait[] {
    const { flight, graph } = this.run;
    const sums = new Map<number, PairWait>();
    for (let i = 0; i < flight.count; ++i) {
      const cause = this.causeOf(i);
      if (cause.idle <= 0) continue;
      const waiter = graph.tail[flight.link[i]!]!, other = graph.tail[flight.link[cause.message]!]!;
      const key = waiter * graph.nodes + other, sum = sums.get(key) ?? { waiter, for: other, idle: 0, messages: 0 };
      sum.idle += cause.idle;
      sum.messages += 1;
      sums.set(key, sum);
    }
    return [...sums.values()].sort((a, b) => b.idle - a.idle || a.waiter - b.waiter || a.for - b.for);
  }

  // What a chain's time goes to: on the way, or standing (executions, limits of hosts).
  timeOf(chain: ChainLink[]): { moving: number; standing: number } {
    const { flight } = this.run;
    let moving = 0, at = 0, standing = 0;
    for (const { message } of chain) {
      standing += Math.max(0, flight.start[message]! - at);
      const from = Math.max(at, flight.start[message]!);
      moving += Math.max(0, flight.arrive[message]! - from);
      at = Math.max(at, flight.arrive[message]!);
    }
    return { moving, standing };
  }
}

export const causeInWords = (cause: Cause, executed: boolean): string => ({
  data: executed ? 'what came in last' : 'what it carries', link: 'its link', step: 'the step before', none: 'nothing' })[cause.kind];
