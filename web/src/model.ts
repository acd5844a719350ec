// What the views draw: a graph (of nodes, or of groups of a network too large for them) and one schedule on it with
// its messages by row of the timeline.
import type { Grid, Network, Schedule } from './data';

export interface Graph {
  name: string; nodes: number; ranks: number; ranksOfNetwork: number; grouped: boolean; labels: string[]; grid: Grid | null;
  tail: number[]; head: number[]; bandwidth: number[]; alpha: number[] | null;
  links: number[]; // how many of the network one of the graph stands for
}

export function graphOf(network: Network): Graph {
  const { groups, links } = network;
  if (groups)
    return { name: network.name, nodes: groups.names.length, ranks: groups.names.length, ranksOfNetwork: network.ranks, grouped: true, labels: groups.names, grid: groups.grid,
      tail: groups.tail, head: groups.head, bandwidth: groups.bandwidth, alpha: null, links: groups.links };
  const labels = network.names ?? Array.from({ length: network.nodes }, (_, i) => String(i));
  const { tail, head, bandwidth, alpha_ps: alpha } = links!;
  return { name: network.name, nodes: network.nodes, ranks: network.ranks, ranksOfNetwork: network.ranks, grouped: false, labels, grid: network.grid ?? null, tail, head, bandwidth,
    alpha, links: tail.map(() => 1) };
}

export const isSwitch = (graph: Graph, node: number): boolean => node >= graph.ranks;
export const linkName = (graph: Graph, link: number): string => `${graph.labels[graph.tail[link]!]} -> ${graph.labels[graph.head[link]!]}`;

export interface Flight {
  count: number; link: Int32Array; step: Int32Array; start: Float64Array; free: Float64Array; arrive: Float64Array;
  bytes: Float64Array; first: Float64Array;
  longest: number; // of all, from start to arrival
}

const NO_FLIGHT: Flight = { count: 0, link: new Int32Array(), step: new Int32Array(), start: new Float64Array(), free: new Float64Array(),
  arrive: new Float64Array(), bytes: new Float64Array(), first: new Float64Array(), longest: 0 };

export interface StepSum { step: number; start: number; end: number; messages: number; bytes: number; busiest: number; busiestBytes: number; use: number }

export class Run {
  readonly flight: Flight;
  readonly time: number; // ps
  private messageOf: Map<number, number> | null = null;
  private ofShard: Map<number, number[]> | null = null;

  constructor(readonly graph: Graph, readonly schedule: Schedule) {
    const m = schedule.messages;
    if (m === undefined) {
      this.flight = NO_FLIGHT;
    } else {
      // In order of start: the simulator's order, made sure of for binary search.
      const order = Uint32Array.from(m.link, (_, i) => i);
      if (m.start_ps.some((start, i) => i > 0 && start < m.start_ps[i - 1]!)) order.sort((a, b) => m.start_ps[a]! - m.start_ps[b]! || a - b);
      const real = (column: number[]): Float64Array => Float64Array.from(order, (i) => column[i]!);
      const start = real(m.start_ps), arrive = real(m.arrive_ps);
      let longest = 0;
      for (let i = 0; i < start.length; ++i) longest = Math.max(longest, arrive[i]! - start[i]!);
      this.flight = { count: order.length, link: Int32Array.from(order, (i) => m.link[i]!), step: Int32Array.from(order, (i) => m.step[i]!), start,
        free: real(m.free_ps), arrive, bytes: real(m.bytes), first: real(m.first), longest };
    }
    this.time = schedule.simulation?.time_ps ?? 0;
  }

  get timed(): boolean { return this.schedule.kind === 'timed'; }

  // The message of a transfer; -1: none.
  messageOfTransfer(transfer: number): number {
    const { transfers } = this.schedule;
    if (transfers === undefined || transfers.link[transfer] === undefined) return -1;
    if (this.messageOf === null) {
      this.messageOf = new Map();
      for (let i = 0; i < this.flight.count; ++i) this.messageOf.set(this.keyOfMessage(i), i);
    }
    const key = this.timed ? transfer : transfers.step[transfer]! * this.graph.tail.length + transfers.link[transfer]!;
    return this.messageOf.get(key) ?? -1;
  }

  // At most `most` of those in it.
  transfersOfMessage(message: number, most: number): number[] {
    const { transfers } = this.schedule;
    if (transfers === undefined) return [];
    if (this.timed) return [this.flight.first[message]!];
    const found: number[] = [];
    const link = this.flight.link[message]!, step = this.flight.step[message]!;
    for (let i = this.flight.first[message]!; i < transfers.link.length && found.length < most; ++i) {
      if (transfers.step[i] !== step) break;
      if (transfers.link[i] === link) found.push(i);
    }
    return found;
  }

  // In order of the schedule.
  transfersOfShard(shard: number): number[] {
    const { transfers } = this.schedule;
    if (transfers === undefined) return [];
    if (this.ofShard === null) {
      this.ofShard = new Map();
      transfers.shard.forEach((of, i) => {
        const list = this.ofShard!.get(of);
        if (list) list.push(i); else this.ofShard!.set(of, [i]);
      });
    }
    return this.ofShard.get(shard) ?? [];
  }

  // Messages between start and arrival at a time.
  inFlight(time: number): number[] {
    const { start, arrive, count, longest } = this.flight;
    const found: number[] = [];
    for (let i = lowerBound(start, time - longest); i < count && start[i]! <= time; ++i) if (arrive[i]! > time) found.push(i);
    return found;
  }

  // Of step schedules.
  steps(): StepSum[] {
    const sums = new Map<number, StepSum>();
    const busyOf = new Map<number, number>();
    const { flight } = this;
    for (let i = 0; i < flight.count && !this.timed; ++i) {
      const step = flight.step[i]!;
      const sum = sums.get(step) ?? { step, start: Infinity, end: 0, messages: 0, bytes: 0, busiest: -1, busiestBytes: -1, use: 0 };
      sums.set(step, sum);
      sum.start = Math.min(sum.start, flight.start[i]!);
      sum.end = Math.max(sum.end, flight.arrive[i]!);
      sum.messages += 1;
      sum.bytes += flight.bytes[i]!;
      busyOf.set(step, (busyOf.get(step) ?? 0) + flight.free[i]! - flight.start[i]!);
      if (flight.bytes[i]! > sum.busiestBytes) [sum.busiest, sum.busiestBytes] = [flight.link[i]!, flight.bytes[i]!];
    }
    const all = [...sums.values()].sort((a, b) => a.step - b.step);
    for (const sum of all) {
      const room = (sum.end - sum.start) * this.graph.tail.length;
      sum.use = room > 0 ? (busyOf.get(sum.step) ?? 0) / room : 0;
    }
    return all;
  }

  private keyOfMessage(i: number): number {
    return this.timed ? this.flight.first[i]! : this.flight.step[i]! * this.graph.tail.length + this.flight.link[i]!;
  }
}

// The first index whose value is not below `value`, in an ascending array.
export function lowerBound(values: Float64Array, value: number): number {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle]! < value) low = middle + 1; else high = middle;
  }
  return low;
}

// Links out of a set of nodes.
export function linksOut(graph: Graph, inside: ReadonlySet<number>): number[] {
  const out: number[] = [];
  for (let link = 0; link < graph.tail.length; ++link) if (inside.has(graph.tail[link]!) && !inside.has(graph.head[link]!)) out.push(link);
  return out;
}
