// Operations of a communicator, as a daemon traced them: a lane a rank, and of each operation which rank came last.
import type { Operations, Schedule } from './data';
import { clock, type Clock } from './clock';
import { element } from './dom';
import { table } from './limit_view';
import { Run, type Graph } from './model';
import { Store } from './selection';
import { TimelineView } from './timeline_view';
import { bytes, count, instants, plural, seconds } from './words';

const COLORS = ['#0072b2', '#c3c9d0'];
const MOST = 500;

// Lanes as if they were links, events as messages over them.
export function lanesOfOperations(operations: Operations): { graph: Graph; schedule: Schedule } {
  const { lanes, events } = operations;
  const one = lanes.map((_, i) => i), none = lanes.map(() => 0);
  const graph: Graph = { name: operations.title, nodes: lanes.length, ranks: lanes.length, ranksOfNetwork: lanes.length, grouped: false, labels: lanes, grid: null, tail: one, head: one, bandwidth: none, alpha: null, links: lanes.map(() => 1) };
  const end = events.end_ps.reduce((most, at) => Math.max(most, at), 1);
  const schedule: Schedule = { network: 0, label: operations.title, collective: '', algorithm: '', kind: 'timed', steps: 2, shards: 0, units_per_shard: 1, transfers_total: 0, size_bytes: 0, verified: null, faults_total: 0, faults: [], note: '',
    simulation: { link_model: '', mode: '', time_ps: end, algbw: null, busbw: null, messages: events.lane.length, max_in_flight: 0, use: { busy_ps: none, bytes: none } },
    messages: { link: events.lane, step: events.waits, start_ps: events.start_ps, free_ps: events.end_ps, arrive_ps: events.end_ps, bytes: events.bytes, first: events.lane.map((_, i) => i) } };
  return { graph, schedule };
}

export interface OperationSum { sequence: number; name: string; bytes: number; first: number; last: number; lastLane: number; end: number }
// One a sequence: when its first rank called it, which rank called last and when, and when all had it.
export function sumUp(operations: Operations): OperationSum[] {
  const { events } = operations;
  const called = new Map<number, Map<number, number>>(); // by sequence and lane: the first time
  const sums = new Map<number, OperationSum>();
  events.lane.forEach((lane, i) => {
    const sequence = events.sequence[i]!;
    const lanes = called.get(sequence) ?? new Map<number, number>();
    called.set(sequence, lanes);
    lanes.set(lane, Math.min(lanes.get(lane) ?? Infinity, events.start_ps[i]!));
    const sum = sums.get(sequence) ?? { sequence, name: '', bytes: 0, first: Infinity, last: -Infinity, lastLane: -1, end: 0 };
    sums.set(sequence, sum);
    if (events.waits[i] === 0) [sum.name, sum.bytes] = [events.name[i]!, events.bytes[i]!];
    sum.end = Math.max(sum.end, events.end_ps[i]!);
  });
  for (const [sequence, lanes] of called) {
    const sum = sums.get(sequence)!;
    for (const [lane, at] of lanes) {
      sum.first = Math.min(sum.first, at);
      if (at > sum.last) [sum.last, sum.lastLane] = [at, lane];
    }
  }
  return [...sums.values()].sort((a, b) => a.sequence - b.sequence);
}

export interface OperationsView { roots: HTMLElement[]; timeline: TimelineView | null; store: Store; clock: Clock | null }

export function operationsView(operations: Operations): OperationsView {
  const { graph, schedule } = lanesOfOperations(operations), run = new Run(graph, schedule), store = new Store();
  const { events } = operations;
  const notes = [operations.omitted, events.lane.length === 0 && !operations.omitted ? 'This communicator has no operations yet: there is nothing to show.' : ''].filter((text) => text !== '').map((text) => element('p', { class: 'note' }, text));
  if (run.flight.count === 0) return { roots: notes, timeline: null, store, clock: null };
  const text = (i: number): string => events.name[run.flight.first[i]!] ?? '';
  const timeline = new TimelineView(run, store, (time) => ticking.set(time), { title: 'Operations', rowName: (lane) => graph.labels[lane]!, text, color: (i) => COLORS[run.flight.step[i]!]! });
  const ticking = clock(run.time, (time) => timeline.setNow(time));
  const out = element('p', { 'aria-live': 'polite', id: 'event' }, 'Nothing is chosen. Left and right choose the operation before or after.');
  const sums = sumUp(operations), shown = sums.slice(-MOST);
  const firstOf = (sequence: number): number => { for (let i = 0; i < run.flight.count; ++i) if (events.sequence[run.flight.first[i]!] === sequence) return i; return -1; };
  const made = table('Operations', ['operation', 'number', 'bytes', 'first called', 'last called', 'after', 'by', 'lasts'], shown.map((sum) => ({
    cells: [sum.name || 'waits', count(sum.sequence), bytes(sum.bytes), ...instants(sum.first, sum.last), seconds(sum.last - sum.first), sum.lastLane < 0 ? '-' : graph.labels[sum.lastLane]!, seconds(sum.end - sum.first)],
    run: () => store.select({ kind: 'message', message: firstOf(sum.sequence) }) })));
  store.onChange((s) => {
    if (s.kind !== 'message') return made.mark(-1);
    const { flight } = run, i = flight.first[s.message]!;
    out.textContent = `${graph.labels[events.lane[i]!]}: ${events.name[i]}, number ${count(events.sequence[i]!)}, ${bytes(events.bytes[i]!)}, from ${instants(flight.start[s.message]!, flight.free[s.message]!).join(' to ')}, ${seconds(flight.free[s.message]! - flight.start[s.message]!)}.`;
    made.mark(shown.findIndex((sum) => sum.sequence === events.sequence[i]));
  });
  const legend = element('p', { class: 'soft' }, ...['runs', 'waits for its turn'].flatMap((name, i) => [element('span', { class: 'swatch', style: `background:${COLORS[i]}` }), ` ${name}   `]));
  timeline.root.append(ticking.root, legend, out);
  const rows = element('section', { class: 'wide', 'aria-label': 'Operations by number' }, element('div', { class: 'bar' }, element('h2', {}, 'Who came last'), element('span', { class: 'soft' }, `${sums.length > MOST ? `the last ${MOST} of ` : ''}${plural(sums.length, 'operation')}; a collective ends when its last rank has called it and data is moved`)), made.root);
  return { roots: [...notes, timeline.root, rows], timeline, store, clock: ticking };
}
